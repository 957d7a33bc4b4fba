//! HTTP/1.1, HTTP/2 and HTTP/3 clients as state machines without I/O.
//!
//! A driver passes received bytes to a machine and gets events. It asks the machine for bytes to
//! send and for the time of the next timeout. A machine opens no socket, reads no clock, starts no
//! thread, and never waits. A driver may therefore be blocking or non-blocking, a test may cut the
//! input anywhere, and a fuzzer reaches all code.
//!
//! | in scope | out of scope (part that does it) |
//! |---|---|
//! | [`h1`]: requests and responses of HTTP/1.1 and 1.0 (and 0.9, where it is allowed), client side | sockets, TLS, timeouts of requests (the engine) |
//! | [`h2`]: parallel requests and responses on one connection; [`hpack`] | QUIC, for HTTP/3 (the engine) |
//! | [`h3`]: requests and responses on the streams of a QUIC connection; [`qpack`] | the choice of a request's connection (the engine) |
//! | framing: lengths, chunks, trailers, the end of the connection | reactions to a response: redirects, authentication, cookies (the policy) |
//! | interim responses, `Expect`, tunnels, pipelining | content codings such as gzip (the engine) |
//! | [limits](ResponseLimits) against hostile peers, with typed errors | the choice of a request's fields (the caller) |
//! | [`link_header`]: the links of a response | resolving their targets (the policy) |
//! | [heads](response_head) and [fields] as offsets into one buffer | servers; undoing transfer codings besides chunked |
//!
//! [`h1`], [`h2`] and [`h3`] each contain a whole exchange that compiles and runs.
//!
//! # Body bytes are not copied
//!
//! A body event is a range of the caller's buffer. If a body of known length has nothing but
//! payload left, [`h1::H1Machine::direct_body`] lets the driver move the bytes from the socket to
//! their destination itself.
//!
//! # Purity
//!
//! The crate is `no_std` with `alloc` and forbids `unsafe`; its dependencies are built without
//! `std`. That proves its purity: a socket, a clock, a thread or a random number generator cannot
//! be named here. Time is [an argument](time::MonotonicTimestamp).

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

mod close_reason;
mod dynamic_table;
mod field_coding;
mod field_fault;
pub mod fields;
mod flood_counts;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod hpack;
mod huffman;
mod limits;
pub mod link_header;
mod open_streams;
mod output_buffer;
mod prefix_integer;
pub mod qpack;
pub mod request;
mod request_id_and_body_framing;
mod request_section_writer;
mod response_error;
mod response_from_decoded_fields;
pub mod response_head;
mod stream_exchange_progress;
mod syntax;
pub mod time;

pub use close_reason::CloseReason;
pub use fields::Fields;
pub use limits::ResponseLimits;
pub use request::{BodyLength, RequestHead, SendRequestError};
pub use request_id_and_body_framing::{ContentLengthFault, RequestId, ResponseBodyFraming};
pub use response_error::ResponseError;
pub use response_head::ResponseHead;
pub use syntax::list_elements;
