//! Moves the rest of a body to its sink without copying it through this process's memory.

use std::io;
use std::time::Instant;

use rustix::fd::AsFd;

use super::super::{ConnectionWaker, FinishedTransfers, PipeWriteMode, ReceiveStatus};
use super::{H1Connection, MIN_LARGE_RECEIVE};
use crate::drive::rcvlowat;
use crate::drive::zero_copy_to_sink::{
    self, ExtraPollDescriptor, ZeroCopyMethod, ZeroCopyMover, ZeroCopyStop, ZeroCopyWaitResult,
};
use crate::sink::ReceivedIntoSink;
use crate::transfer::ReceiveCredit;

/// The decision whether the kernel moves the rest of the body to its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZeroCopyDecision {
    /// The decision has not been made yet.
    Undecided,
    /// The kernel moves the bytes to the sink's descriptor, with this method.
    Moved(ZeroCopyMethod),
    /// The connection receives the bytes into memory, and the sink writes them.
    Copied,
}

/// The minimum number of remaining body bytes for which the connection checks whether the kernel
/// can move them to the sink. For fewer bytes, the check costs more than it saves.
const MIN_BYTES_TO_MOVE: u64 = 64 << 10;

impl H1Connection {
    /// Returns the number of bytes of the body in progress that are still to come; 0 if unknown.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.conn.direct_body().unwrap_or(0)
    }

    /// Returns true if the kernel can move the rest of the body to the sink. The caller then calls
    /// [`H1Connection::move_body`] instead of [`H1Connection::receive`]. During that call, nothing
    /// else may write to the sink. `pipes` says how the caller waits for a sink that is a pipe.
    pub fn is_direct(&mut self, pipes: PipeWriteMode) -> bool {
        if self.direct == ZeroCopyDecision::Moved(ZeroCopyMethod::Pipe) && pipes != PipeWriteMode::Awaited {
            // A caller that waits for the pipe made the decision, and gave the connection away.
            self.direct = ZeroCopyDecision::Copied;
        }
        if self.direct == ZeroCopyDecision::Undecided {
            let is_bare = !self.stream.is_secure() && !self.stream.has_buffered_input();
            let granted = self.remaining() >= MIN_BYTES_TO_MOVE && is_bare && !self.has_output();
            if !granted {
                return false;
            }
            let output = self.queue.front_mut().and_then(|transfer| transfer.direct_descriptor());
            self.direct = output
                .and_then(zero_copy_to_sink::zero_copy_method_for)
                .filter(|target| *target != ZeroCopyMethod::Pipe || pipes == PipeWriteMode::Awaited)
                .map_or(ZeroCopyDecision::Copied, ZeroCopyDecision::Moved);
        }
        matches!(self.direct, ZeroCopyDecision::Moved(_))
    }

    /// Waits in `poll` until the connection can receive, send or read more content, but not beyond
    /// `deadline`. If the body goes directly to a pipe, first waits for room in the pipe. A caller
    /// with blocking receives does not need this.
    ///
    /// # Errors
    /// The errors of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<ZeroCopyWaitResult> {
        let sends = self.waits_to_send() && !self.stream.waits_for_proxy();
        let socket = self.stream.as_fd();
        let pipe = match self.queue.front_mut() {
            Some(transfer) if self.direct == ZeroCopyDecision::Moved(ZeroCopyMethod::Pipe) => {
                if !transfer.direct_descriptor().map_or(Ok(true), zero_copy_to_sink::has_room)? {
                    transfer.set_paused(true, Instant::now());
                    if !transfer
                        .direct_descriptor()
                        .map_or(Ok(true), |pipe| zero_copy_to_sink::wait_for_room(pipe, deadline))?
                    {
                        return Ok(ZeroCopyWaitResult::Late);
                    }
                    transfer.set_paused(false, Instant::now());
                }
                transfer.direct_descriptor()
            }
            _ => None,
        };
        let extra_descriptor =
            self.content.source_to_poll().map(ExtraPollDescriptor::Source).or(pipe.map(ExtraPollDescriptor::Sink));
        self.pacing.wait(socket, sends, [extra_descriptor, None], deadline)
    }

    /// Has the kernel move available bytes of the body in progress to its sink, once.
    /// [`ReceiveStatus::WouldBlock`] means that no bytes are available, or that the sink's pipe is
    /// full. After any other result, there may be more bytes.
    pub fn move_body(
        &mut self,
        mover: &mut ZeroCopyMover,
        now: Instant,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> ReceiveStatus {
        let remaining = self.remaining();
        let (ZeroCopyDecision::Moved(target), Some(transfer)) = (self.direct, self.queue.front_mut()) else {
            return ReceiveStatus::More;
        };
        let credit = match transfer.credit(now, waker.wake, waker.token) {
            ReceiveCredit::Bytes(credit) => credit,
            stopped => return self.on_no_credit(stopped, now, finished),
        };
        let Some(output) = transfer.direct_descriptor() else {
            self.direct = ZeroCopyDecision::Copied;
            return ReceiveStatus::More;
        };
        let step = mover.step(self.stream.as_fd(), output, target, remaining.min(credit));
        let outcome = transfer.on_moved(step.moved, now);
        self.set_raised_mark(rcvlowat::MARK_WHEN_MOVED);
        if self.advance_direct_body(step.moved, now, finished) {
            self.on_received(step.moved, now);
            return if self.closing { self.close(now, finished) } else { ReceiveStatus::More };
        }
        self.on_received(step.moved, now);
        match (outcome, step.stop) {
            (Err(error), _) => self.abort(error, now, finished),
            (Ok(()), None) => ReceiveStatus::More,
            (Ok(()), Some(ZeroCopyStop::WouldBlock)) => ReceiveStatus::WouldBlock,
            (Ok(()), Some(ZeroCopyStop::Refused)) => {
                self.direct = ZeroCopyDecision::Copied;
                ReceiveStatus::More
            }
            (Ok(()), Some(ZeroCopyStop::Socket(error))) => self.on_io_error(error, now, finished),
            (Ok(()), Some(ZeroCopyStop::Output(error))) => {
                let Some(transfer) = self.queue.front() else { return self.close(now, finished) };
                self.abort(transfer.write_error(error), now, finished)
            }
        }
    }

    /// Receives body bytes directly into the sink's memory. Returns `None` if the sink provides no
    /// memory, or if the bytes must be decrypted, decoded or searched first.
    pub(super) fn receive_into_sink(
        &mut self,
        credit: u64,
        waker: ConnectionWaker<'_>,
        finished: &mut FinishedTransfers,
    ) -> Option<ReceiveStatus> {
        // On Windows, only the methods of the socket can wait, and tell the event loop.
        let most = if cfg!(windows) { 0 } else { self.remaining().min(credit) };
        if most == 0 || self.stream.is_secure() || self.stream.has_buffered_input() || self.has_output() {
            return None;
        }
        let transfer = self.queue.front_mut()?;
        let received = transfer.receive_into_sink(self.stream.as_fd(), usize::try_from(most).unwrap_or(usize::MAX))?;
        let now = Instant::now();
        Some(match received {
            Ok(ReceivedIntoSink { bytes: 0, .. }) => self.on_peer_close(false, now, finished),
            Ok(ReceivedIntoSink { bytes: n, filled_memory }) => {
                self.expects_body_in_sink |= n >= MIN_LARGE_RECEIVE;
                let outcome = transfer.on_moved(n as u64, now);
                let is_all = self.advance_direct_body(n as u64, now, finished);
                self.set_raised_mark(rcvlowat::MARK_WHEN_COPIED);
                self.on_received(n as u64, now);
                match outcome {
                    Err(error) if !is_all => self.abort(error, now, finished),
                    _ if self.closing => self.close(now, finished),
                    _ if waker.wake.is_some() && (n as u64) < most && !filled_memory => ReceiveStatus::Drained,
                    _ => ReceiveStatus::More,
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ReceiveStatus::WouldBlock,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ReceiveStatus::Interrupted,
            Err(error) => self.on_io_error(error, now, finished),
        })
    }
}
