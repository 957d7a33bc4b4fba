//! Connections: names, sockets, proxies, TLS and the pool. Nothing here has an event loop.
//!
//! ```text
//! connecting: dns ─► connect (happy eyeballs) ─► socket ─► [SOCKS, CONNECT] ─► [tls] ─► stream
//! tcp_info counts what a connection cost
//! ```
//!
//! Each stage is a state machine or a call that may be bounded by a deadline, so that the reactor
//! (one loop, many connections) and the blocking driver (one request, no loop) use the same code.
//! What a stage leaves out: no HTTP, no pooling policy, no retries.

pub mod connect;
pub(crate) mod connecting;
pub mod dns;
mod http2_tunnel;
mod lingering_close;
pub mod local_address;
pub mod pool;
pub mod proxy;
pub mod socket;
pub mod stream;
pub mod tcp_info;
pub mod tls;
mod transport;
