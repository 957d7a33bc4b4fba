//! The settings of QUIC: transport parameters (RFC 9000 section 18), windows, timers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quinn_proto::{EndpointConfig, IdleTimeout, RandomConnectionIdGenerator, TransportConfig, VarInt};

use crate::net::receive_memory_budget::{ConnectionReceiveBudget, SharedRecvMemory};

/// The largest UDP payload in bytes: 65,535 minus the eight bytes of the UDP header.
const MAX_PAYLOAD: u16 = 65_527;
/// The maximum number of unidirectional streams that the peer may have open. HTTP/3 uses three of
/// them. Some servers open further streams of unknown types, to test clients.
const MAX_PEER_UNI_STREAMS: u32 = 8;
/// The time without a received datagram after which the connection is closed. The peer may announce
/// a shorter time.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of sent bytes of a connection that are not acknowledged yet.
const SEND_WINDOW: u64 = 4 << 20;
/// The maximum number of buffered bytes of handshake messages that arrived out of order. Some
/// servers send certificate chains of more than 16 KiB.
const HANDSHAKE_BUFFER: usize = 64 << 10;

/// The flow-control windows for receiving on a connection, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuicWindows {
    /// The receive window of the connection, for all of its streams together.
    pub(crate) connection: u32,
    /// The final receive window of a stream. The window grows from `initial_stream` to this size
    /// when an eighth of this number of bytes has been read from the stream.
    pub(crate) stream: u32,
    /// The initial receive window of a stream. It is at least a quarter of `stream`.
    pub(crate) initial_stream: u32,
}

/// The largest receive window, in bytes, of a stream on a connection that several transfers share.
const MAX_SHARED_STREAM_WINDOW: u32 = 512 << 10;

impl QuicWindows {
    /// Returns the windows of a new connection. `budget` is the number of received bytes that may
    /// wait until the program accepts them, and `load` the expected number of transfers.
    pub(crate) fn new(budget: &ConnectionReceiveBudget, load: QuicConnectionLoad) -> Self {
        let connection = budget.connection_window();
        let stream = match load {
            // The sink of a part always has room, so a stream may fill the window.
            QuicConnectionLoad::PartsOfBody => {
                return Self { connection, stream: connection, initial_stream: connection };
            }
            QuicConnectionLoad::One => connection / 3 * 2,
            QuicConnectionLoad::Many => (connection / 16).min(MAX_SHARED_STREAM_WINDOW),
        };
        Self { connection, stream, initial_stream: stream / 4 }
    }
}

/// The expected number of transfers on a new QUIC connection, which determines the sizes of the
/// connection's flow-control windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicConnectionLoad {
    /// One transfer.
    One,
    /// Several transfers, or an unknown number.
    Many,
    /// Parts of a split download, at most two at a time.
    PartsOfBody,
}

impl QuicConnectionLoad {
    /// Reserves the receive budget of the connection.
    pub(super) fn reserve(self, memory: &SharedRecvMemory) -> ConnectionReceiveBudget {
        match self {
            Self::One | Self::Many => memory.reserve(),
            Self::PartsOfBody => memory.reserve_for_parts(),
        }
    }
}

/// Returns the quinn-proto settings of a connection with these flow-control windows.
pub(super) fn transport(windows: QuicWindows) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(MAX_PEER_UNI_STREAMS))
        .receive_window(VarInt::from_u32(windows.connection))
        .stream_receive_window(VarInt::from_u32(windows.stream))
        .send_window(SEND_WINDOW)
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .crypto_buffer_size(HANDSHAKE_BUFFER)
        .allow_spin(false)
        .datagram_receive_buffer_size(None);
    Arc::new(config)
}

/// Returns the endpoint settings. The client's connection IDs are empty: each connection has its
/// own socket, so datagrams need no ID.
pub(super) fn endpoint() -> Arc<EndpointConfig> {
    static CONFIG: LazyLock<Arc<EndpointConfig>> = LazyLock::new(|| {
        let mut config = EndpointConfig::default();
        config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0))).supported_versions(vec![1]);
        // The payload is in the permitted range.
        let _ = config.max_udp_payload_size(MAX_PAYLOAD);
        Arc::new(config)
    });
    Arc::clone(&CONFIG)
}
