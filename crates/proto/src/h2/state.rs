//! What a connection remembers of its peer.

use crate::time::Time;

/// What the peer's SETTINGS say.
#[derive(Debug)]
pub(crate) struct Peer {
    /// They have come.
    pub(crate) seen: bool,
    pub(crate) max_streams: u32,
    pub(crate) window: u32,
    pub(crate) max_frame: u32,
    pub(crate) max_head: Option<u32>,
}

/// How much may arrive on streams that are gone, as one account for all of them: to remember each stream that was ever
/// reset would take unbounded memory, and to forget some would end connections by mistake.
#[derive(Default, Debug)]
pub(crate) struct Stale {
    bytes: u64,
    blocks: u32,
    any: bool,
}

impl Stale {
    pub(crate) fn add(&mut self, window: i64) {
        self.bytes += window.max(0) as u64;
        // A head, trailers, and a few interim heads between.
        self.blocks = self.blocks.saturating_add(4);
        self.any = true;
    }

    pub(crate) fn data(&mut self, length: u32) -> bool {
        let left = self.bytes.checked_sub(u64::from(length)).filter(|_| self.any);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    pub(crate) fn block(&mut self) -> bool {
        let left = self.blocks.checked_sub(1);
        self.blocks = left.unwrap_or(0);
        left.is_some()
    }
}

/// Times that matter.
#[derive(Default, Debug)]
pub(crate) struct Clocks {
    /// When our SETTINGS were sent, until they are acknowledged.
    pub(crate) settings: Option<Time>,
    pub(crate) settings_done: bool,
    /// When something was last received.
    pub(crate) heard: Time,
    /// When a PING was sent that has not been answered.
    pub(crate) ping: Option<Time>,
    /// Bodies that are held back.
    pub(crate) holding: u32,
}

impl Clocks {
    /// Since when nothing was received, or since an unanswered PING if that is later.
    pub(crate) fn silent_since(&self) -> Time {
        self.ping.map_or(self.heard, |ping| ping.max(self.heard))
    }
}
