//! The limits on HTTP/2 frames that make no progress.

use super::{FloodKind, H2Error};
use crate::flood_counts::Flood;

/// Limits on HTTP/2 frames that make no progress: for each kind, the number of frames that may
/// arrive in ten seconds. Each frame that makes progress allows one more frame of every kind.
///
/// Frames without progress occupy no memory, except those counted by [`FloodLimits::unread`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FloodLimits {
    /// The number of PING frames. Default 1,000. Hazard: a server that sends a PING to measure each
    /// round trip may exceed a small limit.
    pub ping: u32,
    /// The number of SETTINGS frames, acknowledgements included. Default 100.
    pub settings: u32,
    /// The number of DATA frames that have no payload and do not end the stream. Default 1,000.
    pub empty_data: u32,
    /// The number of WINDOW_UPDATE frames. Default 10,000; four more are allowed for each frame of
    /// a request's body that was sent.
    pub window_update: u32,
    /// The number of PRIORITY frames. Default 1,000.
    pub priority: u32,
    /// The number of RST_STREAM frames on streams that had ended. Default 1,000. A reset of an open
    /// stream is not counted, because it ends a request.
    pub reset: u32,
    /// The number of GOAWAY frames. Default 16.
    pub go_away: u32,
    /// The number of frames of unknown types. Default 1,000.
    pub unknown: u32,
    /// The number of CONTINUATION frames of one header block, however long the block takes to
    /// arrive. Default 64: a head of 300 KiB needs 19.
    pub continuation: u32,
    /// The number of PING and SETTINGS frames that may wait for their acknowledgements to be sent
    /// because the peer does not read. This count is not limited to ten seconds. Default 2,000,
    /// about 34 KB.
    pub unread: u32,
}

impl Default for FloodLimits {
    fn default() -> FloodLimits {
        FloodLimits {
            ping: 1_000,
            settings: 100,
            empty_data: 1_000,
            window_update: 10_000,
            priority: 1_000,
            reset: 1_000,
            go_away: 16,
            unknown: 1_000,
            continuation: 64,
            unread: 2_000,
        }
    }
}

/// The number of kinds of useless frames: the variants of [`FloodKind`].
pub(crate) const FLOOD_KINDS: usize = FloodKind::Unread as usize + 1;

impl FloodLimits {
    /// Returns the limits as an array, in the order of the variants of [`FloodKind`].
    pub(crate) fn by_kind(&self) -> [u32; FLOOD_KINDS] {
        let mut limits = [0; FLOOD_KINDS];
        for (kind, limit) in [
            (FloodKind::Ping, self.ping),
            (FloodKind::Settings, self.settings),
            (FloodKind::EmptyData, self.empty_data),
            (FloodKind::WindowUpdate, self.window_update),
            (FloodKind::Priority, self.priority),
            (FloodKind::Reset, self.reset),
            (FloodKind::GoAway, self.go_away),
            (FloodKind::Unknown, self.unknown),
            (FloodKind::Continuation, self.continuation),
            (FloodKind::Unread, self.unread),
        ] {
            limits[kind as usize] = limit;
        }
        limits
    }
}

impl Flood for FloodKind {
    type Error = H2Error;

    fn index(self) -> usize {
        self as usize
    }

    fn exceeded(self, limit: u32) -> H2Error {
        H2Error::Flood { kind: self, limit }
    }
}
