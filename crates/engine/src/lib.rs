//! haul is an HTTP client library. It moves bodies as fast as the machine and the network allow,
//! from one request of a program up to a list of a million URLs. Its memory is bounded, failed
//! requests can be retried, and each secret is sent only to the server for which it was given.
//!
//! A single request needs neither a thread nor an event loop, and the next one uses the same
//! connection:
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
//! | call | use |
//! |---|---|
//! | [`Client::get`] …, [`RequestBuilder::send`] | a response whose body is streamed |
//! | [`Client::call`], [`Client::perform`] | a whole body, in memory or in your own sink |
//! | [`Client::fetch_all`], [`Client::batch`] | many requests at once; foreign event loops |
//! | [`RequestBuilder::send_async`] | async programs, with any runtime |
//! | [`Client::fetch`] | a body into a file or a descriptor, split if that helps |
//! | [`fleet::Fleet`] | a list of URLs, with extraction and further stages |
//!
//! Many URLs fetched concurrently, to standard output in the order of the list:
//!
//! ```no_run
//! use haul::Client;
//! use haul::fleet::{BodyDestination, Fleet, FleetOptions, FleetItem, NoReport, FleetStage};
//! use haul::sink::descriptor_writer::DescriptorWriter;
//!
//! let item = |i| FleetItem::new(format!("http://example.test/{i}"), BodyDestination::Output);
//! let pages = (1..=1_000_000).map(move |i| Ok(item(i)));
//! let fleet = Fleet::new(vec![FleetStage::default()], FleetOptions::default());
//! let summary = fleet.run(&Client::new(), Box::new(pages), DescriptorWriter::stdout(), NoReport)?;
//! std::process::exit(summary.exit_code.into());
//! # #[expect(unreachable_code)]
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! # Modules
//!
//! The modules that programs use most come first:
//!
//! | module | content |
//! |---|---|
//! | [`Client`] | shared state of all requests: connections, names, TLS, buffers |
//! | [`request`] | requests and their options |
//! | [`response`] | responses: blocking or async, streamed or whole |
//! | [`batch`] | many requests of a program at once |
//! | [`interrupt_callback`] | hooks by which Ctrl-C and alarms of a host language end a wait |
//! | [`fleet`] | many URLs: order, caps, stages that feed each other |
//! | [`pagination`] | listings of many pages: the next page, and the end |
//! | [`extraction`] | extraction of values from pages; unique and sorted values |
//! | [`sink`] | destinations of bodies |
//! | [`transfer`], [`transfer_facts`], [`stats`], [`trace`] | outcome and timing; totals; tracing |
//! | [`transfer_record`] | a finished transfer as a JSON object |
//! | [`exchange_record`] | records of exchanges as they were on the wire, for archives |
//! | [`state`] | state that responses set: cookies, HSTS, Alt-Svc; credentials |
//! | [`body`] | content decoding, delivery of bodies to sinks, and request bodies |
//! | [`net`] | names, connections, proxies, TLS, the pool |
//! | [`dns_over_https`] | lookups by an HTTPS server |
//! | [`buffer_pool`] | read buffers that a sink can take over |
//!
//! `drive` (the two drivers), `time_conversions` and `fork` are public only for tests and
//! benchmarks, and `system` (files on Unix and Windows) for the command. They are hidden from this
//! page and may change without notice.
//!
//! haul uses two crates that contain neither sockets nor clocks: `haul_proto`, the protocol state
//! machines, and `haul_policy`, the rules (redirects, retries, secrets, queues).
//!
//! # Not supported
//!
//! NTLM.

pub mod batch;
pub mod body;
pub mod buffer_pool;
mod client;
pub mod dns_over_https;
#[doc(hidden)]
pub mod drive;
mod error;
pub mod exchange_record;
pub mod extraction;
pub mod fleet;
#[doc(hidden)]
pub mod fork;
#[cfg(feature = "http")]
mod http_types;
mod ignore_poison;
pub mod interrupt_callback;
mod lru;
pub mod net;
pub mod pagination;
pub mod request;
pub mod response;
pub mod sink;
mod spawn_with_signals_blocked;
mod split;
pub mod state;
pub mod stats;
mod std_or_loom_sync;
#[doc(hidden)]
pub mod system;
#[doc(hidden)]
pub mod time_conversions;
pub mod trace;
pub mod transfer;
pub mod transfer_facts;
mod transfer_outcome;
#[cfg(feature = "json")]
pub mod transfer_record;
pub mod trusted_environment_variables;

pub use client::{Client, ClientBuilder};
pub use error::{Error, ErrorKind, Result};
pub use haul_policy::target::{Target, TargetError};
pub use haul_proto::response_head::{ProtocolVersion, ResponseHead};
pub use request::{Request, RequestBuilder, RequestOptions};
pub use response::{AsyncResponse, BufferedResponse, Response};

/// True if this build of the crate has HTTP/3 (the feature `http3`).
pub const HAS_HTTP3: bool = cfg!(feature = "http3");

/// True if this build supports authentication by Negotiate: it has the feature `negotiate`, and can
/// load the system's Kerberos library at run time.
pub const HAS_NEGOTIATE: bool =
    cfg!(all(feature = "negotiate", target_os = "linux", not(target_feature = "crt-static")));
