//! The drivers: what moves bytes between sockets, the protocol machine and the transfers.
//!
//! | module | what it is |
//! |---|---|
//! | [`link`] | one open connection, its machine and its transfers; both drivers use it |
//! | [`blocking`] | one transfer on one socket, waiting: no event loop, no thread |
//! | [`direct`] | body bytes from the socket to the sink, past our memory |
//! | [`bulk`] | when a socket is to wake us for large pieces only |
//! | [`worker`] | an event loop on a thread, for many transfers at once |
//! | [`lane`] | a connection of a worker from its name to its first request |
//! | `idle_cores` | whether another thread would have a core to run on |
//! | [`inbox`] | how other threads reach a worker |
//!
//! No policy lives here: what to fetch, in which order and what becomes of it is the caller's ([`worker::Supply`]) and
//! the transfer's.

pub mod blocking;
pub mod bulk;
pub mod direct;
mod idle_cores;
pub mod inbox;
pub mod lane;
pub mod link;
pub mod worker;
