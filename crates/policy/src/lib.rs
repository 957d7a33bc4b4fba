//! httphaul-policy: the decisions of an HTTP client, as pure functions and values.
//!
//! The crate decides which host a URL names, where a redirect leads and which secrets it may
//! receive, whether a failed request is retried, and which job starts next. The crate has no I/O,
//! no clock and no threads. Callers pass in monotonic time as [`MonotonicTime`], and wall-clock
//! seconds and entropy as plain `u64` arguments, so a test can replay every decision. The crate's
//! `clippy.toml` bans the standard library's clocks, sockets, files and threads. (The crate is not
//! `no_std`: [`httpdate`] uses `std::time::SystemTime`, and [`queue`] has a `HashMap`.)
//!
//! | module | subject |
//! |---|---|
//! | [`dns`] | DNS lookups: configuration, messages, retries, order of addresses |
//! | [`target`] | URLs: scheme, host, port and request target |
//! | [`glob`] | curl's globs, such as `http://h/[1-3]/{a,b}` |
//! | [`redirect`] | the next target, method and secrets after a 3xx |
//! | [`field_validation`] | valid names and values of fields |
//! | [`secret_fields`] | fields that carry secrets and may not follow a redirect |
//! | [`protocols`] | `--proto` and `--proto-redir` |
//! | [`cookie`] | cookies: accepting, storing, sending, files |
//! | [`auth`] | challenges, answers to them, and the choice of credentials |
//! | [`netrc`] | passwords by host |
//! | [`proxy`] | the choice of a proxy, and the data that it learns |
//! | [`hsts`] | hosts that must be reached over TLS |
//! | [`alt_svc`] | alternative services of an origin |
//! | [`http3`] | the choice between HTTP/3 and TCP |
//! | [`multipart`], [`urlencode`] | the encodings of forms |
//! | [`retry`] | whether and when a failed request is tried again |
//! | [`concurrency`] | the number of requests to a host at a time |
//! | [`pagination`] | the pages of a listing: the next URL, and the end |
//! | [`queue`] | the order of jobs, fairly between hosts |
//! | [`range`] | parts of a body: claims, received bytes, checkpoints |
//! | [`byte_and_transfer_rates`] | limits on bytes and on new transfers a second |
//! | [`shard`] | parts of a list of URLs, by host, for several machines |
//! | [`speed`] | detection of slow and stalled transfers |
//! | [`file_names_by_system`] | the rules of Unix and Windows for file names |
//! | [`url_template`] | URLs made from matches in pages that are not trusted |
//! | [`page_reference`] | URLs made from references in pages, such as those of links |
//! | [`file_url`] | local files named by `file:` URLs |
//! | [`filename`] | local file names from a URL or a Content-Disposition |
//!
//! Left out: everything that touches a socket, a file or a clock. The engine does that.
//!
//! ```
//! use haul_policy::redirect::{RedirectRules, SecretHandling, redirected_request};
//! use haul_policy::target::Target;
//!
//! let first = Target::parse("https://shop.example/login")?;
//! let hop = redirected_request(&RedirectRules::default(), 0, 302, Some(b"//ads.example/x"), "POST", &first, &first.origin())?
//!     .expect("a 302 with a Location is followed");
//! assert_eq!(hop.target.to_url(), "https://ads.example/x");
//! assert_eq!((hop.method.as_str(), hop.secrets), ("GET", SecretHandling::Drop));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod alt_svc;
pub mod auth;
pub mod byte_and_transfer_rates;
mod byte_order_mark;
mod calendar;
pub mod concurrency;
pub mod cookie;
pub mod dns;
pub mod field_validation;
pub mod file_names_by_system;
pub mod file_url;
pub mod filename;
pub mod glob;
pub mod hsts;
pub mod http3;
pub mod multipart;
pub mod netrc;
pub mod output_name_placeholders;
pub mod page_reference;
pub mod pagination;
pub mod protocols;
pub mod proxy;
pub mod queue;
pub mod range;
pub mod redirect;
pub mod retry;
pub mod secret_fields;
pub mod shard;
pub mod speed;
pub mod target;
pub mod terminal_text;
pub mod time;
pub mod url_template;
pub mod urlencode;

pub use target::{Host, Origin, Scheme, Target, TargetError};
pub use time::MonotonicTime;
