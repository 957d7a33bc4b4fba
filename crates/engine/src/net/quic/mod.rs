//! QUIC (RFC 9000): connections for HTTP/3. quinn-proto is the state machine; here are its socket,
//! its timers and its settings.
//!
//! ```text
//! QuicRace ── one QuicConnection for each address ──▶ the first whose handshake is complete
//! QuicConnection: UDP socket ──▶ DatagramBuffers ──▶ quinn-proto ──▶ streams
//! ```
//!
//! Nothing here waits: the drivers wait for the socket and for [`QuicConnection::next_timeout`].
//!
//! Left out: 0-RTT, datagrams (RFC 9221), several paths.

mod buffers;
mod config;
mod connection;
mod race;
mod socket;

pub(crate) use buffers::DatagramBufferPool;
pub(crate) use config::QuicWindows;
pub(crate) use connection::{QuicConnection, QuicReceive, connection_lost};
pub(crate) use race::{QuicRace, QuicResources};
