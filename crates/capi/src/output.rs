//! Where the body of a reply goes: memory that the caller gives, a function of the caller's, or memory of haul's own.

use std::ffi::c_void;

use haul::{Error, ErrorKind, Result};

use crate::callbacks::{haul_body_fn, haul_head_fn, haul_reserve_fn};
use crate::error::Fault;
use crate::response::{Body, haul_reply};
use crate::text::haul_slice;

/// The most that an announced length makes haul ask for at once: a false length costs no memory.
pub(crate) const TRUSTED_LENGTH: u64 = 4 << 20;

/// What the caller says of where a reply goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) on_head: haul_head_fn,
    pub(crate) reserve: haul_reserve_fn,
    pub(crate) on_body: haul_body_fn,
    pub(crate) user: *mut c_void,
}

impl Output {
    /// Into haul's own memory.
    pub(crate) const KEPT: Self = Self { on_head: None, reserve: None, on_body: None, user: std::ptr::null_mut() };

    pub(crate) fn check(&self) -> std::result::Result<(), Fault> {
        if self.reserve.is_some() && self.on_body.is_some() {
            return Err(Fault::setup("the body can go to reserve or to on_body, not to both"));
        }
        Ok(())
    }

    /// Shows the head to who wants to see it before the body.
    pub(crate) fn show(&self, head: &haul_reply) -> Result<()> {
        let Some(on_head) = self.on_head else { return Ok(()) };
        // SAFETY: a function of the caller's, with its own pointer and a reply that lives during the call.
        if unsafe { on_head(self.user, head) } == 0 { Ok(()) } else { Err(refused("the head was refused by its taker")) }
    }
}

/// Puts one body where it belongs.
pub(crate) struct Filler<'b> {
    output: Output,
    body: &'b mut Body,
    /// The caller's memory, and how much of it there is.
    start: *mut u8,
    room: usize,
}

impl<'b> Filler<'b> {
    /// `body` is where it is told of, and kept where nobody else wants it.
    pub(crate) fn new(output: Output, body: &'b mut Body) -> Self {
        body.is_kept = output.reserve.is_none() && output.on_body.is_none();
        Self { output, body, start: std::ptr::null_mut(), room: 0 }
    }

    /// So much is announced, if that is known.
    pub(crate) fn expect(&mut self, length: Option<u64>) -> Result<()> {
        let length = length.unwrap_or(0).min(TRUSTED_LENGTH) as usize;
        if self.body.is_kept {
            self.body.kept.reserve_exact(length);
        }
        if length > 0 && self.output.reserve.is_some() { self.grow(length) } else { Ok(()) }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let done = usize::try_from(self.body.len).unwrap_or(usize::MAX);
        if self.body.is_kept {
            self.body.kept.extend_from_slice(bytes);
        } else if let Some(on_body) = self.output.on_body {
            // SAFETY: a function of the caller's, with its own pointer and bytes that live during the call.
            if unsafe { on_body(self.output.user, bytes.as_ptr().cast(), bytes.len()) } != 0 {
                return Err(refused("the body was refused by its taker"));
            }
        } else if !bytes.is_empty() {
            let needed = done.checked_add(bytes.len()).ok_or_else(|| refused("the body does not fit into memory"))?;
            if needed > self.room {
                self.grow(needed.max(self.room.saturating_mul(2)))?;
            }
            // SAFETY: `reserve` gave `room` bytes, which hold `done` already and take these: `needed <= room`. They are the
            // caller's, so `bytes`, which is haul's, does not overlap.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(done), bytes.len()) };
        }
        self.body.len += bytes.len() as u64;
        Ok(())
    }

    fn grow(&mut self, size: usize) -> Result<()> {
        let Some(reserve) = self.output.reserve else { return Ok(()) };
        // SAFETY: a function of the caller's, with its own pointer.
        let start = unsafe { reserve(self.output.user, size) }.cast::<u8>();
        if start.is_null() {
            return Err(refused("no memory for the body was given"));
        }
        (self.start, self.room) = (start, size);
        Ok(())
    }

    /// The body is complete, or will be no more.
    pub(crate) fn finish(self) {
        if self.output.reserve.is_some() && !self.start.is_null() {
            let len = usize::try_from(self.body.len).unwrap_or(usize::MAX);
            self.body.lent = haul_slice { data: self.start.cast(), len };
        }
    }
}

fn refused(text: &str) -> Error {
    Error::new(ErrorKind::Write, text)
}
