//! haul-policy: what an HTTP client decides, as pure functions and values.
//!
//! Which host a URL names, where a redirect leads and what may go there, whether a failure is worth
//! another try, which job starts next. No I/O, no clock, no threads: monotonic time comes in as
//! [`Time`], wall-clock seconds and entropy as plain `u64` arguments, so every decision can be replayed
//! in a test. The crate's `clippy.toml` bans the standard library's clocks, sockets, files and threads.
//! (It is not `no_std`: [`httpdate`] speaks `std::time::SystemTime`, and [`queue`] keeps a `HashMap`.)
//!
//! | module | question |
//! |---|---|
//! | [`target`] | which scheme, host, port and request target does this text name? |
//! | [`glob`] | which URLs does `http://h/[1-3]/{a,b}` stand for? |
//! | [`redirect`] | where does this 3xx lead, with which method, with secrets or without? |
//! | [`field`] | which names and values of fields can be sent? |
//! | [`secrets`] | which fields are secret, and which may follow a redirect? |
//! | [`protocols`] | which of http and https do `--proto` and `--proto-redir` allow? |
//! | [`cookie`] | which cookies are taken, kept and sent? |
//! | [`auth`] | which challenge is answered, how, and with whose credentials? |
//! | [`netrc`] | which password has a host in a netrc file? |
//! | [`proxy`] | which proxy does a request take, and what does that proxy learn? |
//! | [`hsts`] | must this URL be https? |
//! | [`alt_svc`] | where else is this origin served? |
//! | [`multipart`], [`urlencode`] | how do forms look as bytes? |
//! | [`retry`] | is another try worth it, and after how long? |
//! | [`queue`] | which job starts next, fairly between hosts? |
//! | [`range`] | which bytes came, are they of the same body, which are missing? |
//! | [`rate`] | how many bytes may be moved now? |
//! | [`speed`] | is this transfer too slow, or has it stalled? |
//! | [`template`] | which URL does a match make, when pages are not to be trusted? |
//! | [`file_url`] | which local file does a `file:` URL name? |
//! | [`filename`] | which local name does a URL or a Content-Disposition give? |
//!
//! Left out: everything that touches a socket, a file or a clock. That is the engine's.
//!
//! ```
//! use haul_policy::redirect::{RedirectRules, Secrets, decide};
//! use haul_policy::target::Target;
//!
//! let first = Target::parse("https://shop.example/login")?;
//! let hop = decide(&RedirectRules::default(), 0, 302, Some(b"//ads.example/x"), "POST", &first, &first.origin())?
//!     .expect("a 302 with a Location is followed");
//! assert_eq!(hop.target.to_url(), "https://ads.example/x");
//! assert_eq!((hop.method.as_str(), hop.secrets), ("GET", Secrets::Drop));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod alt_svc;
pub mod auth;
mod civil;
pub mod cookie;
pub mod field;
pub mod file_url;
pub mod filename;
pub mod glob;
pub mod hsts;
pub mod multipart;
pub mod netrc;
pub mod printable;
pub mod protocols;
pub mod proxy;
pub mod queue;
pub mod range;
pub mod rate;
pub mod redirect;
pub mod retry;
pub mod secrets;
pub mod speed;
pub mod target;
pub mod template;
pub mod time;
pub mod urlencode;

pub use target::{Host, Origin, Scheme, Target, TargetError};
pub use time::Time;
