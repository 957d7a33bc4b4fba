//! The limits on HTTP/3 data that make no progress.

use super::{H3Error, H3FloodKind};
use crate::flood_counts::Flood;

/// Limits on HTTP/3 data that make no progress. Each field except [`H3FloodLimits::unread`] is the
/// number of frames, streams or instructions of one kind that may arrive in ten seconds. Each
/// received field section makes progress, and so does each DATA frame with payload in either
/// direction: it raises all these limits by one for the current ten seconds.
///
/// Data without progress occupy no memory, except the bytes that [`H3FloodLimits::unread`] limits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct H3FloodLimits {
    /// The number of frames of unknown types, on all streams together. Default 1,000.
    pub unknown_frame: u32,
    /// The number of unidirectional streams of unknown types. Default 100.
    pub unknown_stream: u32,
    /// The number of DATA frames without payload. Default 1,000.
    pub empty_data: u32,
    /// The number of GOAWAY frames. Default 16.
    pub go_away: u32,
    /// The number of CANCEL_PUSH frames. Default 16.
    pub cancel_push: u32,
    /// The number of instructions on the peer's QPACK encoder stream. Default 200,000. One
    /// instruction can make the client copy a table entry of 4 KiB, so this many instructions cost
    /// up to 0.1 s of CPU. Hazard: a server that inserts ten entries for each small response may
    /// exceed a small limit.
    pub table_change: u32,
    /// The number of Stream Cancellation instructions on the peer's QPACK decoder stream. Default
    /// 1,000.
    pub stream_cancellation: u32,
    /// The maximum number of bytes of QPACK decoder instructions that wait because the peer gives
    /// no flow-control credit for their stream. Unlike the other limits, this is no count of the
    /// last ten seconds. Default 32,768.
    pub unread: u32,
}

impl Default for H3FloodLimits {
    fn default() -> H3FloodLimits {
        H3FloodLimits {
            unknown_frame: 1_000,
            unknown_stream: 100,
            empty_data: 1_000,
            go_away: 16,
            cancel_push: 16,
            table_change: 200_000,
            stream_cancellation: 1_000,
            unread: 32 * 1024,
        }
    }
}

/// The number of kinds of useless data: the variants of [`H3FloodKind`].
pub(crate) const H3_FLOOD_KINDS: usize = H3FloodKind::Unread as usize + 1;

impl H3FloodLimits {
    /// Returns the limits as an array, in the order of the variants of [`H3FloodKind`].
    pub(crate) fn by_kind(&self) -> [u32; H3_FLOOD_KINDS] {
        let mut limits = [0; H3_FLOOD_KINDS];
        for (kind, limit) in [
            (H3FloodKind::UnknownFrame, self.unknown_frame),
            (H3FloodKind::UnknownStream, self.unknown_stream),
            (H3FloodKind::EmptyData, self.empty_data),
            (H3FloodKind::GoAway, self.go_away),
            (H3FloodKind::CancelPush, self.cancel_push),
            (H3FloodKind::TableChange, self.table_change),
            (H3FloodKind::StreamCancellation, self.stream_cancellation),
            (H3FloodKind::Unread, self.unread),
        ] {
            limits[kind as usize] = limit;
        }
        limits
    }
}

impl Flood for H3FloodKind {
    type Error = H3Error;

    fn index(self) -> usize {
        self as usize
    }

    fn exceeded(self, limit: u32) -> H3Error {
        H3Error::Flood { kind: self, limit }
    }
}
