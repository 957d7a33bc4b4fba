//! A sink that puts a body into its slot of a window.

use std::sync::Arc;

use super::window::Window;
use crate::Result;
use crate::buffer::Lease;
use crate::sink::records::{Place, Records};
use crate::sink::{Sink, Wake};

pub(super) struct WindowSink {
    window: Arc<Window>,
    slot: u64,
    order: Arc<[u64]>,
    found: u64,
}

impl WindowSink {
    pub(super) fn new(window: Arc<Window>, slot: u64, order: Arc<[u64]>) -> Self {
        Self { window, slot, order, found: 0 }
    }
}

impl Sink for WindowSink {
    fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        self.window.credit(self.slot, waker, token)
    }

    fn is_awaited(&self) -> bool {
        self.window.is_claimed_by(self.slot)
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        self.window.bytes(self.slot, lease)
    }

    fn records(&mut self, records: &mut Records) -> Result<()> {
        records.place = Some(Place { order: Arc::clone(&self.order), before: self.found });
        self.found += records.len() as u64;
        self.window.records(self.slot, records)
    }

    fn restart(&mut self) -> bool {
        self.found = 0;
        self.window.restart(self.slot)
    }
}
