//! The rest of a body on its way past our memory.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use super::super::{Finished, Pipes, Progress, Waker};
use super::Link;
use crate::drive::direct::{self, Beside, Mover, Stop, Waited, Way};
use crate::transfer::Credit;

/// The way by which the rest of the body under way gets to its sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direct {
    /// The way is not decided yet.
    Undecided,
    /// Bytes are moved by the kernel.
    Moved(Way),
    /// Bytes are received and written.
    Copied,
}

/// The size of a remaining body below which the check for direct moves does not pay.
const WORTH_MOVING: u64 = 64 << 10;

impl Link {
    /// Returns the number of bytes of the body under way that are still to come; 0 if unknown.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.conn.direct_body().unwrap_or(0)
    }

    /// Returns true if the kernel can move the rest of the body under way to the sink: by
    /// [`Link::move_body`] in place of [`Link::receive`]. Nothing else may write to the transfer's
    /// sink meanwhile.
    pub fn is_direct(&mut self, pipes: Pipes) -> bool {
        if self.direct == Direct::Undecided {
            let is_bare = !self.stream.is_secure() && !self.stream.has_ahead();
            let granted = self.remaining() >= WORTH_MOVING && is_bare && !self.has_output();
            if !granted {
                return false;
            }
            let output = self.queue.front_mut().and_then(|transfer| transfer.direct());
            self.direct = output
                .and_then(direct::way)
                .filter(|way| *way != Way::Pipe || pipes == Pipes::Awaited)
                .map_or(Direct::Copied, Direct::Moved);
        }
        matches!(self.direct, Direct::Moved(_))
    }

    /// Waits until there is something to do for the body under way; for a driver that waits in no receive.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Waited> {
        let sends = self.wants_room() && !self.stream.is_held();
        let socket = self.stream.as_fd();
        let pipe = match self.queue.front_mut() {
            Some(transfer) if self.direct == Direct::Moved(Way::Pipe) => {
                if !transfer.direct().map_or(Ok(true), direct::has_room)? {
                    transfer.is_held_up(true, Instant::now());
                    if !transfer.direct().map_or(Ok(true), |pipe| direct::wait_for_room(pipe, deadline))? {
                        return Ok(Waited::Late);
                    }
                    transfer.is_held_up(false, Instant::now());
                }
                transfer.direct()
            }
            _ => None,
        };
        let beside = self.content.source().map(Beside::Source).or(pipe.map(Beside::Sink));
        self.pace.wait(socket, sends, beside, deadline)
    }

    /// Moves available bytes of the body under way to its sink, once. There may be more after any
    /// result but [`Progress::WouldBlock`], which can also mean that the sink's pipe is full.
    pub fn move_body(
        &mut self,
        mover: &mut Mover,
        now: Instant,
        waker: Waker<'_>,
        finished: &mut Finished,
    ) -> Progress {
        let remaining = self.remaining();
        let (Direct::Moved(way), Some(transfer)) = (self.direct, self.queue.front_mut()) else {
            return Progress::More;
        };
        let credit = match transfer.credit(now, waker.wake, waker.token) {
            Credit::Bytes(credit) => credit,
            stopped => return self.stop(stopped, now, finished),
        };
        let Some(output) = transfer.direct() else {
            self.direct = Direct::Copied;
            return Progress::More;
        };
        let step = mover.step(self.stream.as_fd(), output, way, remaining.min(credit));
        let outcome = transfer.on_moved(step.moved, now);
        if self.advance(step.moved, now, finished) {
            self.came(step.moved, now);
            return if self.closing { self.close(now, finished) } else { Progress::More };
        }
        self.came(step.moved, now);
        match (outcome, step.stop) {
            (Err(error), _) => self.break_off(error, now, finished),
            (Ok(()), None) => Progress::More,
            (Ok(()), Some(Stop::WouldBlock)) => Progress::WouldBlock,
            (Ok(()), Some(Stop::Refused)) => {
                self.direct = Direct::Copied;
                Progress::More
            }
            (Ok(()), Some(Stop::Socket(error))) => self.broke(error, now, finished),
            (Ok(()), Some(Stop::Output(error))) => {
                let Some(transfer) = self.queue.front() else { return self.close(now, finished) };
                self.break_off(transfer.cannot_write(error), now, finished)
            }
        }
    }

    /// Receives body bytes into memory of the sink, if it offers some and no other party has to see
    /// the bytes.
    pub(super) fn receive_past(&mut self, credit: u64, waker: Waker<'_>, finished: &mut Finished) -> Option<Progress> {
        let most = self.remaining().min(credit);
        if most == 0 || self.stream.is_secure() || self.stream.has_ahead() || self.has_output() {
            return None;
        }
        let transfer = self.queue.front_mut()?;
        let received = transfer.receive(self.stream.as_fd(), usize::try_from(most).unwrap_or(usize::MAX))?;
        let now = Instant::now();
        Some(match received {
            Ok(0) => self.end(false, now, finished),
            Ok(n) => {
                let outcome = transfer.on_moved(n as u64, now);
                let is_all = self.advance(n as u64, now, finished);
                self.came(n as u64, now);
                match outcome {
                    Err(error) if !is_all => self.break_off(error, now, finished),
                    _ if self.closing => self.close(now, finished),
                    _ if waker.wake.is_some() && (n as u64) < most => Progress::Drained,
                    _ => Progress::More,
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Progress::WouldBlock,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Progress::Interrupted,
            Err(error) => self.broke(error, now, finished),
        })
    }
}
