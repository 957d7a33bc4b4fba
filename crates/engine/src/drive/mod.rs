//! The drivers: they move bytes between sockets, the protocol machines and the transfers.
//!
//! | module | content |
//! |---|---|
//! | [`connection`] | an open connection with its machine and transfers, for both drivers |
//! | [`blocking`] | one transfer on one socket with blocking calls: no event loop, no thread |
//! | [`worker`] | an event loop on a thread, for many transfers at once |
//! | [`connection_slot`] | a worker's connection from the name lookup on |
//! | [`worker_inbox`] | messages to a worker from other threads |
//! | `file_sender` | content of requests that the kernel sends from a file |
//! | [`zero_copy_to_sink`] | body bytes that the kernel moves from the socket to the sink |
//! | `retry_waiting` | transfers that wait for their retry without a slot |
//! | [`rcvlowat`] | the low-water mark of a socket, for large reads of bulk bodies |
//! | `idle_cores` | detection of idle processor cores, for further threads |
//!
//! The drivers do not decide what to fetch: the caller ([`worker::Scheduler`]) and the transfer
//! decide what is fetched, in which order, and where the bodies go.

pub mod blocking;
pub mod connection;
pub mod connection_slot;
mod file_sender;
pub(crate) mod idle_cores;
pub mod rcvlowat;
pub(crate) mod retry_waiting;
pub mod worker;
pub mod worker_inbox;
pub mod zero_copy_to_sink;
