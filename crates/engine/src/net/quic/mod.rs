//! QUIC (RFC 9000): connections for HTTP/3. quinn-proto is the state machine. This module provides
//! its socket, its timers and its settings.
//!
//! ```text
//! QuicAddressRace ── one QuicConnection for each address ──▶ the first whose handshake is complete
//! QuicConnection: UDP socket ──▶ DatagramReceiveBuffers ──▶ quinn-proto ──▶ streams
//! ```
//!
//! This module never blocks: the drivers wait for the socket and for
//! [`QuicConnection::next_timeout`].
//!
//! Not supported: 0-RTT, datagrams (RFC 9221), multiple paths.

mod address_race;
mod config;
mod connection;
mod datagram_receive_buffers;
mod socket;

pub(crate) use address_race::{QuicAddressRace, QuicReceiveMemory};
pub(crate) use config::{QuicConnectionLoad, QuicWindows};
pub(crate) use connection::{QuicConnection, QuicReceiveResult, connection_lost};
pub(crate) use datagram_receive_buffers::DatagramBufferPool;
