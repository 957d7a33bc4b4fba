//! Connections: names, sockets, proxies, TLS and the pool, without an event loop.
//!
//! ```text
//! connecting: dns ─► connect (happy eyeballs) ─► socket ─► [SOCKS, CONNECT] ─► [tls] ─► stream
//! tcp_info counts the bytes and packets of a connection
//! ```
//!
//! Each step is a state machine, or a call that can have a deadline. So the event loop (many
//! connections) and the blocking driver (one request) use the same code. HTTP requests and retries
//! are not part of this module.

mod attempt_schedule;
pub(crate) mod connecting;
pub(crate) mod connection_descriptor_budget;
pub(crate) mod connection_info;
pub mod dns;
pub(crate) mod event_registration;
pub mod happy_eyeballs;
mod http2_tunnel;
pub(crate) mod http3_discovery_by_dns;
mod lingering_close;
pub mod local_address;
pub mod pool;
pub mod proxy;
#[cfg(feature = "http3")]
pub(crate) mod quic;
pub(crate) mod receive_memory_budget;
#[cfg_attr(windows, path = "socket_windows.rs")]
pub mod socket;
mod socket_options;
mod socket_or_proxy_tls;
pub mod stream;
pub mod tcp_info;
pub mod tls;
