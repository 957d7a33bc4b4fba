//! haul moves HTTP bodies as fast as the machine and the network allow: one request of a program, or a list of a million
//! URLs, in bounded memory, with retries, and with no secret told to whom it was not given for.
//!
//! One request, waiting for it. Nothing is started for it, neither a thread nor an event loop, and the next one uses the
//! same connection:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use haul::sink::file::FileSink;
//! use haul::{Client, RequestOptions, Target};
//!
//! let client = Client::new();
//! let mut options = RequestOptions::default();
//! options.redirects.follow = true;
//! options.retry.max = 3;
//! let target = Target::parse("https://example.test/index.html")?;
//! let outcome = client.fetch(target, Arc::new(options), Box::new(FileSink::new("index.html")));
//! println!("{} bytes with status {}", outcome.facts.body_bytes, outcome.facts.status);
//! outcome.result?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Many, side by side, to standard output in the order of the list:
//!
//! ```no_run
//! use haul::Client;
//! use haul::fleet::{Destination, Fleet, FleetOptions, Item, Quiet, Stage};
//! use haul::sink::output::Output;
//!
//! let pages = (1..=1_000_000).map(|i| Ok(Item { url: format!("http://example.test/{i}"), destination: Destination::Output }));
//! let fleet = Fleet::new(vec![Stage::default()], FleetOptions::default());
//! let summary = fleet.run(&Client::new(), Box::new(pages), Output::stdout(), Quiet)?;
//! std::process::exit(summary.exit_code.into());
//! # #[expect(unreachable_code)]
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! # Modules
//!
//! From what a program uses to what it rarely has to know:
//!
//! | module | what it is |
//! |---|---|
//! | [`Client`] | what all requests of a program share: connections, names, TLS, buffers |
//! | [`request`] | what a request asks for besides its target |
//! | [`fleet`] | many URLs: order, caps, stages that feed each other |
//! | [`pipeline`] | what is taken from pages: matches, each once, sorted |
//! | [`sink`] | where bodies go, and how a sink says how much it can take |
//! | [`transfer`], [`facts`], [`stats`], [`trace`] | what became of a request; sums of all; who wants to watch |
//! | [`state`] | what replies leave behind: cookies, HSTS, Alt-Svc; credentials |
//! | [`body`] | content decoding with its guard, the way of a body to its sink, and what a request sends |
//! | [`net`] | names, connections, proxies, TLS, the pool |
//! | [`buffer`] | read buffers that a sink can take over |
//!
//! `drive` (the two drivers) and `clock` are public for tests and benches alone: they are hidden here, and change
//! without notice.
//!
//! Below it lie two crates that know neither sockets nor clocks: `haul-proto`, the protocol machines, and `haul-policy`,
//! the rules (redirects, retries, secrets, queues).
//!
//! # Left out
//!
//! HTTP/3, NTLM and Negotiate.

pub mod batch;
pub mod body;
pub mod buffer;
mod client;
#[doc(hidden)]
pub mod clock;
#[doc(hidden)]
pub mod drive;
mod error;
pub mod facts;
pub mod fleet;
#[doc(hidden)]
pub mod fork;
pub mod interrupt;
pub mod net;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod sink;
mod split;
pub mod state;
pub mod stats;
pub mod trace;
pub mod transfer;

pub use client::{Client, ClientBuilder};
pub use error::{Error, ErrorKind, Result};
pub use haul_policy::target::Target;
pub use haul_proto::head::{Head, Version};
pub use request::{Request, RequestBuilder, RequestOptions};
pub use response::{AsyncResponse, Reply, Response};
