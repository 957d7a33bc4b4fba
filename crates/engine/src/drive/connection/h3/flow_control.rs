//! Flow control with stalled streams. A stalled stream is not read at present, because its sink has
//! no room or its rate limit is reached. Its unread bytes use up the connection's window. The
//! window is therefore enlarged by the windows of the stalled streams, and the other streams can
//! still receive.
//!
//! ```text
//! window of the connection = usual window + windows of the stalled streams
//! ```
//!
//! The sum is bounded, because the number of streams is bounded ([`max_streams`]).

use std::time::Instant;

use quinn_proto::VarInt;

use super::super::uploads::StreamMap;
use super::super::{ConnectionWaker, FinishedTransfers};
use super::{H3ActiveStream, H3Connection};
use crate::net::quic::{QuicConnection, QuicWindows};
use crate::transfer::ReceiveCredit;

/// The maximum number of received but unread bytes of all streams of a connection together. The
/// number of concurrent requests is limited so that their flow-control windows fit.
const MAX_BUFFERED_BYTES: u32 = 48 << 20;
/// The maximum number of concurrent requests on a connection.
const MAX_STREAMS: u32 = 100;

/// Returns the maximum number of concurrent requests on a connection with these flow-control
/// windows. The windows of all streams together are at most [`MAX_BUFFERED_BYTES`].
pub(super) fn max_streams(windows: QuicWindows) -> u32 {
    (MAX_BUFFERED_BYTES / windows.stream.max(1)).clamp(1, MAX_STREAMS)
}

/// The stalled streams of a connection. They are not read at present, because their sinks have no
/// room or their rate limit is reached.
#[derive(Default)]
pub(super) struct FullSinkStreams {
    ids: Vec<u64>,
    /// The number of bytes by which the connection's flow-control window was enlarged for these
    /// streams.
    extra: u64,
    /// True if the sink of a stream has no room and will not wake the connection, because the
    /// driver waits for the sink's output.
    pub(super) waits_for_output: bool,
}

impl FullSinkStreams {
    /// Returns the number of stalled streams.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Removes a stream that has ended.
    pub(super) fn remove(&mut self, id: u64) {
        self.ids.retain(|&other| other != id);
    }

    /// Sets the connection's flow-control window to the sum of the connection's usual window and
    /// the windows of the stalled streams. Other streams can then receive although the stalled
    /// bytes are unread.
    pub(super) fn update_window(&mut self, active: &StreamMap<H3ActiveStream>, quic: &mut QuicConnection) {
        let windows = quic.windows();
        // A stream's window is larger once an eighth of it was read.
        let held = |active: &H3ActiveStream| match active.received >= u64::from(windows.stream / 8) {
            true => u64::from(windows.stream),
            false => u64::from(windows.initial_stream),
        };
        let extra = self.ids.iter().filter_map(|id| active.get(id)).map(held).sum();
        if extra != self.extra {
            self.extra = extra;
            let window = VarInt::from_u64(u64::from(quic.budget().connection_window()) + extra).unwrap_or(VarInt::MAX);
            quic.machine().set_receive_window(window);
        }
    }
}

impl H3Connection {
    /// Lets the next receive read the stalled streams again, because their sinks may have room or
    /// their pause has ended.
    pub(super) fn resume_stalled(&mut self) {
        self.pacing.resumes_at = None;
        self.stalled.waits_for_output = false;
        for id in std::mem::take(&mut self.stalled.ids) {
            self.mark_readable(id);
        }
    }

    /// Returns the number of bytes that may be read from a stream now. Returns `None` if the stream
    /// becomes stalled (its sink has no room, or its rate limit is reached), or if its transfer
    /// needs no more bytes.
    pub(super) fn credit(
        &mut self,
        id: u64,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> Option<u64> {
        let active = self.active.get_mut(&id)?;
        match active.transfer.credit(now, waker.wake, waker.token) {
            ReceiveCredit::Bytes(bytes) if bytes > 0 => Some(bytes),
            _ if active.transfer.has_all_wanted_bytes() => {
                self.cancel_rest(id, now, finished);
                None
            }
            // After the end of the connection, the sink keeps the last bytes: there is nothing to
            // serve while the driver waits for its output.
            ReceiveCredit::Full if waker.may_block() && self.lost.is_some() => Some(u64::MAX),
            stopped => {
                self.stalled.waits_for_output |= waker.may_block() && stopped == ReceiveCredit::Full;
                if let ReceiveCredit::Until(at) = stopped {
                    self.pacing.resumes_at = Some(self.pacing.resumes_at.map_or(at, |other| other.min(at)));
                }
                self.stalled.ids.push(id);
                None
            }
        }
    }
}
