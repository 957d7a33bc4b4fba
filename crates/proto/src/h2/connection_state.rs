//! The state of an HTTP/2 connection besides its streams: the peer's settings, the data that may
//! still arrive on closed streams, and the timers.

use crate::time::MonotonicTimestamp;

/// The values in the peer's SETTINGS that the client needs.
#[derive(Debug)]
pub(crate) struct PeerSettings {
    /// True if the peer's first SETTINGS have arrived.
    pub(crate) seen: bool,
    pub(crate) max_streams: u32,
    pub(crate) window: u32,
    pub(crate) max_frame: u32,
    pub(crate) max_head: Option<u32>,
}

/// The number of bytes in DATA and header blocks that may still arrive on closed streams. One count
/// covers all closed streams. Remembering each stream would take unbounded memory, and forgetting
/// some would end connections by mistake.
#[derive(Default, Debug)]
pub(crate) struct ClosedStreamAllowance {
    bytes: u64,
    blocks: u32,
    any: bool,
}

impl ClosedStreamAllowance {
    pub(crate) fn add_closed_stream(&mut self, window: i64) {
        self.bytes += window.max(0) as u64;
        // A head, trailers, and a few interim heads between.
        self.blocks = self.blocks.saturating_add(4);
        self.any = true;
    }

    pub(crate) fn take_data(&mut self, length: u32) -> bool {
        let left = self.bytes.checked_sub(u64::from(length)).filter(|_| self.any);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    pub(crate) fn take_header_block(&mut self) -> bool {
        let left = self.blocks.checked_sub(1);
        self.blocks = left.unwrap_or(0);
        left.is_some()
    }
}

/// The points in time from which the timeouts of an HTTP/2 connection are counted.
#[derive(Default, Debug)]
pub(crate) struct ConnectionTimers {
    /// The time at which the client sent its SETTINGS; `None` once the peer has acknowledged them.
    pub(crate) settings: Option<MonotonicTimestamp>,
    pub(crate) settings_done: bool,
    /// The end of the grace period for the acknowledgement of the client's SETTINGS; `None` before
    /// the timeout.
    pub(crate) settings_grace_end: Option<MonotonicTimestamp>,
    /// The time at which input from the peer last arrived.
    pub(crate) heard: MonotonicTimestamp,
    /// The time at which the client sent the PING that the peer has not answered yet; `None` if
    /// every PING is answered.
    pub(crate) ping: Option<MonotonicTimestamp>,
    /// The number of request bodies that wait for `100 Continue`.
    pub(crate) holding: u32,
}

impl ConnectionTimers {
    /// Returns the time since which the peer has been silent: the time of the last input, or that
    /// of the unanswered PING if it is later.
    pub(crate) fn silent_since(&self) -> MonotonicTimestamp {
        self.ping.map_or(self.heard, |ping| ping.max(self.heard))
    }
}
