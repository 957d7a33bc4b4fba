//! haul moves HTTP bodies as fast as the machine and the network allow: one request of a program, or a list of a million URLs, in bounded memory,
//! with retries, and with every secret sent only to the server it was given for.
//!
//! One request, waiting for it. Nothing is started for it, neither a thread nor an event loop, and the next one uses the
//! same connection:
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let url = origin.url("/small");
//! use haul::Client;
//!
//! let client = Client::new();
//! let response = client.get(&url).send()?.error_for_status()?;
//! println!("{}: {}", response.url(), response.text()?);
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! | way | for |
//! |---|---|
//! | [`Client::get`] and its like, [`RequestBuilder::send`] | a response whose body is read as it comes |
//! | [`Client::call`], [`Client::perform`] | a whole body at once, in memory or in a sink of one's own: the cheapest |
//! | [`Client::fetch_all`], [`Client::batch`] | many requests at once, bounded, in order or as they come; foreign event loops |
//! | [`RequestBuilder::send_async`] | programs that must not wait, under any runtime |
//! | [`Client::fetch`] | a body into a file or a descriptor, in parts if that helps |
//! | [`fleet::Fleet`] | a list of URLs, with extraction and further stages |
//!
//! Many, side by side, to standard output in the order of the list:
//!
//! ```no_run
//! use haul::Client;
//! use haul::fleet::{BodyDestination, Fleet, FleetOptions, FleetItem, NoReport, FleetStage};
//! use haul::sink::output::DescriptorWriter;
//!
//! let pages = (1..=1_000_000).map(|i| Ok(FleetItem { url: format!("http://example.test/{i}"), destination: BodyDestination::Output }));
//! let fleet = Fleet::new(vec![FleetStage::default()], FleetOptions::default());
//! let summary = fleet.run(&Client::new(), Box::new(pages), DescriptorWriter::stdout(), NoReport)?;
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
//! | [`request`] | what a request asks for, and how it is put together |
//! | [`response`] | responses, waited for or awaited, as they come or whole |
//! | [`batch`] | many requests of a program at once |
//! | [`interrupt`] | how Ctrl-C and alarms of a host language end a wait |
//! | [`fleet`] | many URLs: order, caps, stages that feed each other |
//! | [`pipeline`] | what is taken from pages: matches, each once, sorted |
//! | [`sink`] | where bodies go, and how a sink says how much it can take |
//! | [`transfer`], [`facts`], [`stats`], [`trace`] | what became of a request; sums of all; who wants to watch |
//! | [`state`] | what replies leave behind: cookies, HSTS, Alt-Svc; credentials |
//! | [`body`] | content decoding with its guard, the way of a body to its sink, and what a request sends |
//! | [`net`] | names, connections, proxies, TLS, the pool |
//! | [`buffer`] | read buffers that a sink can take over |
//!
//! `drive` (the two drivers), `clock` and `fork` are public for tests and benches alone: they are hidden here, and change
//! without notice.
//!
//! Below it lie two crates that know neither sockets nor clocks: `haul_proto`, the protocol machines, and `haul_policy`,
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
mod outcome;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod sink;
mod split;
pub mod state;
pub mod stats;
mod sync;
mod threads;
pub mod trace;
pub mod transfer;

pub use client::{Client, ClientBuilder};
pub use error::{Error, ErrorKind, Result};
pub use haul_policy::target::{Target, TargetError};
pub use haul_proto::head::{ProtocolVersion, ResponseHead};
pub use request::{Request, RequestBuilder, RequestOptions};
pub use response::{AsyncResponse, BufferedResponse, Response};
