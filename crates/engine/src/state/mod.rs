//! State that responses set for later requests. Any number of clients and threads can share it, and
//! any number of processes can write its files.
//!
//! | module | what |
//! |---|---|
//! | [`cookie_jar`] | cookies; Netscape's file |
//! | [`hsts`] | hosts that must be reached over TLS; curl's `--hsts` file |
//! | [`alt_svc`] | where else origins are served; curl's `--alt-svc` file |
//! | [`auth`] | credentials, and the challenges that they answer |
//! | `locked_file` | saving to a file that other processes write, too |
//! | `file_backed_store` | the file and the lock of HSTS and Alt-Svc |
//!
//! The rules are in `httphaul-policy`. This module adds locks, the clock and files. The clones of a
//! store share its contents.
//!
//! ```no_run
//! use haul::RequestOptions;
//! use haul::state::cookie_jar::SharedCookieJar;
//!
//! let jar = SharedCookieJar::new();
//! jar.load("cookies.txt")?;
//! let options = RequestOptions { jar: Some(jar.clone()), ..RequestOptions::default() };
//! // ... requests ...
//! # drop(options);
//! jar.save("cookies.txt")?;
//! # Ok::<(), haul::Error>(())
//! ```

pub mod alt_svc;
pub mod auth;
pub mod cookie_jar;
mod file_backed_store;
pub mod http3;

pub use file_backed_store::SharedStore;
pub mod hsts;
mod locked_file;
mod negotiate;
