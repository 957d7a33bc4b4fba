//! Where the body of a [`Response`](super::Response) lies between the driver, which puts it here, and the program, which
//! takes it.
//!
//! The driver's side is a sink ([`Intake`]); the program's is an [`Outlet`]. Bodies whose content is coded lie here as they
//! came, and are decoded as they are taken: what 100 KiB decode to may be 100 MiB.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::{Chunk, Lease};
use crate::sink::memory::receive_into;
use crate::sink::{Begin, Sink, Wake};
use crate::{Error, ErrorKind, Result};

/// How many bytes may lie here: two receives of a driver that does not wait for the program.
pub(crate) const ROOM: u64 = 256 << 10;

/// The most that an announced length makes the whole body's memory to begin with.
const TRUSTED: u64 = 4 << 20;

#[derive(Default)]
struct Held {
    pieces: VecDeque<Chunk>,
    bytes: u64,
    has_begun: bool,
    /// The program has seen the response: it cannot be taken back.
    is_shown: bool,
    coding: Vec<u8>,
    length: Option<u64>,
    /// What came and what comes is wanted in one piece.
    whole: Option<Vec<u8>>,
    /// The program does not want the rest.
    is_given_up: bool,
    /// The driver that waits for room.
    driver: Option<(Arc<dyn Wake>, usize)>,
    /// Who waits for bytes.
    reader: Option<std::task::Waker>,
}

impl Held {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The driver's side.
pub(crate) struct Intake(Arc<Mutex<Held>>);

/// The program's side.
pub(crate) struct Outlet(Arc<Mutex<Held>>);

/// Both sides.
pub(crate) fn pair() -> (Intake, Outlet) {
    let held = Arc::new(Mutex::new(Held::default()));
    (Intake(Arc::clone(&held)), Outlet(held))
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Intake {
    fn takes_coded(&mut self, coding: &[u8]) -> bool {
        lock(&self.0).coding = coding.to_vec();
        true
    }

    fn begin(&mut self, begin: &Begin<'_>) -> Result<()> {
        let mut held = lock(&self.0);
        held.has_begun = true;
        held.length = begin.length;
        held.wake_reader();
        Ok(())
    }

    fn credit(&mut self, waker: Option<&Arc<dyn Wake>>, token: usize) -> u64 {
        let mut held = lock(&self.0);
        // A driver that waits stops by itself as soon as there is something.
        let Some(waker) = waker.filter(|_| held.whole.is_none() && !held.is_given_up) else { return u64::MAX };
        let room = ROOM.saturating_sub(held.bytes);
        if room == 0 {
            held.driver = Some((Arc::clone(waker), token));
        }
        room
    }

    fn bytes(&mut self, lease: Lease<'_>) -> Result<()> {
        let mut held = lock(&self.0);
        if held.is_given_up {
            return Err(Error::new(ErrorKind::Write, "the response is not wanted any more"));
        }
        match &mut held.whole {
            Some(whole) => whole.extend_from_slice(lease.bytes()),
            None => {
                let piece = lease.keep();
                held.bytes += piece.bytes().len() as u64;
                held.pieces.push_back(piece);
                held.wake_reader();
            }
        }
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<usize>> {
        receive_into(lock(&self.0).whole.as_mut()?, socket, most)
    }

    fn restart(&mut self) -> bool {
        let mut held = lock(&self.0);
        if held.is_shown {
            return false;
        }
        *held = Held { driver: held.driver.take(), reader: held.reader.take(), ..Held::default() };
        true
    }
}

impl Outlet {
    /// Whether the response has begun.
    pub(crate) fn has_begun(&self) -> bool {
        lock(&self.0).has_begun
    }

    /// From now on it cannot be taken back. Answers the codings of the content.
    pub(crate) fn show(&self) -> Vec<u8> {
        let mut held = lock(&self.0);
        held.is_shown = true;
        std::mem::take(&mut held.coding)
    }

    /// Whether there are bytes.
    pub(crate) fn has_bytes(&self) -> bool {
        !lock(&self.0).pieces.is_empty()
    }

    /// The next bytes.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let mut held = lock(&self.0);
        let piece = held.pieces.pop_front()?;
        held.bytes -= piece.bytes().len() as u64;
        let driver = held.driver.take();
        drop(held);
        if let Some((driver, token)) = driver {
            driver.wake(token);
        }
        Some(piece)
    }

    /// The rest is wanted in one piece, behind these bytes.
    pub(crate) fn gather(&self, first: &[u8]) {
        let mut held = lock(&self.0);
        let there = first.len() as u64 + held.bytes;
        let mut whole = Vec::with_capacity(held.length.unwrap_or(0).min(TRUSTED).max(there) as usize);
        whole.extend_from_slice(first);
        for piece in held.pieces.drain(..) {
            whole.extend_from_slice(piece.bytes());
        }
        held.bytes = 0;
        held.whole = Some(whole);
        let driver = held.driver.take();
        drop(held);
        if let Some((driver, token)) = driver {
            driver.wake(token);
        }
    }

    /// What was gathered.
    pub(crate) fn gathered(&self) -> Vec<u8> {
        lock(&self.0).whole.take().unwrap_or_default()
    }
}
