//! Serves a connection while the output of its transfer is full: the sink keeps the bytes that the
//! output does not accept, and the driver waits for the output and the socket together.
//!
//! ```text
//!  sink keeps bytes ──▶ is_output_full ──▶ wait for output and socket ──▶ write_kept
//!                                                   │
//!                             end of the exchange ──┴──▶ write_rest
//! ```

use std::time::Instant;

use super::ActiveExchange;
use crate::drive::connection::FinishedTransfers;
use crate::drive::zero_copy_to_sink::wait_for_room;
use crate::interrupt_callback::InterruptCallbackTimer;
use crate::transfer::{ExchangeFailurePoint, Transfer, TransferStep};
use crate::{Error, ErrorKind, Result};

impl ActiveExchange {
    /// Sets whether the sink keeps the bytes that its output does not accept.
    pub(super) fn keep_unwritten(&mut self, keeps: bool) {
        if let Some(transfer) = self.connection.front_transfer_mut() {
            transfer.keep_unwritten(keeps);
        }
    }

    /// Records whether the sink keeps bytes that its output has not accepted.
    pub(super) fn notice_full_output(&mut self) {
        self.is_output_full =
            self.connection.front_transfer_mut().is_some_and(|transfer| transfer.full_output().is_some());
    }

    /// Writes the bytes that the sink keeps, as far as the output accepts them. Returns false if
    /// the output has failed, which ends the transfer.
    pub(super) fn write_kept(&mut self, now: Instant, finished: &mut FinishedTransfers) -> bool {
        if !self.is_output_full {
            return true;
        }
        let Some(transfer) = self.connection.front_transfer_mut() else { return true };
        let tag = transfer.scheduling.tag;
        let Err(error) = transfer.write_kept() else { return true };
        self.connection.cancel(tag, now, finished);
        for (transfer, step) in finished.iter_mut() {
            *step = transfer.on_failure(error.duplicate(), ExchangeFailurePoint::InResponse, now);
        }
        finished.is_empty()
    }
}

/// Writes the bytes that the sink of a transfer keeps after an exchange, and waits for the output.
/// Received bytes are thus written before the transfer is tried again or fails. Returns the
/// transfer's next step: its end if the output fails.
pub(super) fn write_rest(
    (mut transfer, step): (Box<Transfer>, TransferStep),
    timer: &mut InterruptCallbackTimer,
) -> (Box<Transfer>, TransferStep) {
    let written = wait_for_output(&mut transfer, timer);
    let step = match (written, step) {
        (Ok(()), step) | (Err(_), step @ TransferStep::Done(Err(_))) => step,
        (Err(error), _) => transfer.finish_with(Err(error), Instant::now()),
    };
    (transfer, step)
}

/// Writes the kept bytes, and waits until the output has accepted all of them.
fn wait_for_output(transfer: &mut Transfer, timer: &mut InterruptCallbackTimer) -> Result<()> {
    loop {
        transfer.write_kept()?;
        let (now, deadline) = (Instant::now(), transfer.deadline());
        let Some(output) = transfer.full_output() else { return Ok(()) };
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(Error::timed_out());
        }
        timer.call_if_due(now)?;
        wait_for_room(output, timer.limit_wait(deadline, now))
            .map_err(|error| Error::with_source(ErrorKind::Write, "the output cannot be waited for", error))?;
    }
}
