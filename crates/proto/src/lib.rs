//! The HTTP client machines of haul, without I/O.
//!
//! A machine is fed bytes and gives events; it is asked for bytes and says when it wants to be woken. It opens no
//! socket, reads no clock, starts no thread, and never waits. So a driver may be blocking or not, a test may cut the
//! input wherever it likes, and a fuzzer reaches everything.
//!
//! | in scope | out of scope (whose it is) |
//! |---|---|
//! | [`h1`]: requests and responses of HTTP/1.1 and 1.0 (and 0.9, where it is allowed), client side | sockets, TLS, timeouts of requests (the engine) |
//! | [`h2`]: the same side by side on one connection; [`hpack`] | which connection a request uses (the engine) |
//! | framing: lengths, chunks, trailers, the end of the connection | what a status means: redirects, auth, cookies (the policy) |
//! | interim responses, `Expect`, tunnels, pipelining | content codings: gzip and its like (the engine) |
//! | [limits](Limits) against hostile peers, with typed errors | the choice of a request's fields (the caller) |
//! | [heads](head) and [fields] as offsets into one buffer | servers; undoing transfer codings besides chunked |
//!
//! A whole exchange, compiled and run, stands in [`h1`] and in [`h2`].
//!
//! # Body bytes are not copied
//!
//! A body event is a range of the caller's own buffer. When a body of known length has nothing but payload left to come,
//! [`h1::Conn::direct_body`] lets the driver move the bytes from the socket to their place itself.
//!
//! # Purity
//!
//! The crate is `no_std` with `alloc` and forbids `unsafe`, and so are its dependencies built without `std`. That is its
//! proof: a socket, a clock, a thread or a random number generator cannot be named here. Time is [an
//! argument](time::Time).

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

pub mod fields;
pub mod h1;
pub mod h2;
pub mod head;
pub mod hpack;
mod limits;
mod output;
mod syntax;
pub mod time;

pub use fields::Fields;
pub use head::Head;
pub use limits::Limits;
