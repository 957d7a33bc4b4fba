//! Writes the output that the scheduler has gathered, and waits if the output has no room.

use std::time::{Duration, Instant};

use super::{OUTPUT_TOKEN, Worker};
use crate::net::event_registration;
use crate::sink::descriptor_writer::OutputReadiness;
use crate::{Error, ErrorKind, Result};

/// The maximum time for which small bodies are gathered before they are written to the output.
/// During this time, many bodies can be gathered for one call, and the delay of the last body is
/// not noticeable.
const MAX_FLUSH_DELAY: Duration = Duration::from_millis(1);

/// The state of a worker's writing of gathered output. Output is gathered so that one call writes
/// many small bodies.
#[derive(Default)]
pub(super) struct OutputFlushState {
    /// True if the output was full, and the event loop watches it until it is writable.
    is_watched: bool,
    /// True if the last flush could not write everything, and this worker's event loop does not
    /// wait until the output is writable. The worker then tries no flush before its next wake-up.
    is_blocked: bool,
    /// The time when the worker first saw that output was gathered; `None` if no output is
    /// gathered.
    gathered_since: Option<Instant>,
}

impl OutputFlushState {
    /// Records that the output, which the event loop has watched, is writable again. The worker may
    /// then flush again.
    pub(super) fn on_output_writable(&mut self) {
        self.is_watched = false;
    }

    /// Records that an event has woken the worker. The worker may then flush again, even if its
    /// last flush could not write everything.
    pub(super) fn on_wake_up(&mut self) {
        self.is_blocked = false;
    }

    /// Returns the time at which gathered output must be flushed; `None` if no output is gathered.
    /// Also returns `None` while the event loop watches the output, because the next flush then
    /// begins when the output is writable.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.gathered_since.filter(|_| !self.is_watched).map(|since| since + MAX_FLUSH_DELAY)
    }
}

impl Worker {
    /// Writes the output that the scheduler has gathered from several transfers, if that output has
    /// waited for [`MAX_FLUSH_DELAY`]. If the output has no room, the event loop of the worker with
    /// the index 0 watches the output until it is writable.
    ///
    /// # Errors
    /// The output cannot be written any more.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.scheduler.wants_flush() {
            self.output.gathered_since = None;
            return Ok(());
        }
        if self.output.is_blocked {
            return Ok(());
        }
        let since = *self.output.gathered_since.get_or_insert(self.now);
        if self.output.is_watched || self.now.saturating_duration_since(since) < MAX_FLUSH_DELAY {
            return Ok(());
        }
        self.output.gathered_since = None;
        if self.scheduler.flush(self.index)? == OutputReadiness::Free {
            // The rest waits for a later stage, which takes more when one of its transfers starts.
            self.output.is_blocked = self.scheduler.wants_flush();
            return Ok(());
        }
        if self.index != 0 {
            // The first worker watches the output, since only one event loop can watch it.
            self.output.is_blocked = true;
            return Ok(());
        }
        if !self.output.is_watched
            && let Some(fd) = self.scheduler.output_fd()
        {
            let registry = self.poll.registry();
            event_registration::register_output(registry, fd, OUTPUT_TOKEN)
                .map_err(|error| Error::with_source(ErrorKind::Write, "the output cannot be watched", error))?;
            self.output.is_watched = true;
        }
        Ok(())
    }
}
