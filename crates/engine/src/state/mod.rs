//! State that replies leave behind for later requests. Any number of clients and threads share it,
//! and any number of processes may write its files.
//!
//! | module | what |
//! |---|---|
//! | [`jar`] | cookies; Netscape's file |
//! | [`hsts`] | hosts that must be reached over TLS; curl's `--hsts` file |
//! | [`alt_svc`] | where else origins are served; curl's `--alt-svc` file |
//! | [`auth`] | credentials, and the challenges that they answer |
//! | `files` | a save that loses nothing |
//! | `store` | what HSTS and Alt-Svc share |
//!
//! The rules are `httphaul-policy`'s; here are the locks, the clock and the files. Each store is a handle: its clones share what
//! it holds.
//!
//! ```no_run
//! use haul::RequestOptions;
//! use haul::state::jar::Jar;
//!
//! let jar = Jar::new();
//! jar.load("cookies.txt")?;
//! let options = RequestOptions { jar: Some(jar.clone()), ..RequestOptions::default() };
//! // ... requests ...
//! # drop(options);
//! jar.save("cookies.txt")?;
//! # Ok::<(), haul::Error>(())
//! ```

pub mod alt_svc;
pub mod auth;
mod files;
pub mod hsts;
pub mod jar;
mod store;
