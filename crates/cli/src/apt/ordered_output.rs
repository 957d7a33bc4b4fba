//! Sends the messages to apt in the order of apt's requests, although files are fetched in
//! parallel. apt's own methods keep this order, and users compare their output.
//!
//! ```
//! use haul_cli::apt::ordered_output::OrderedWriter;
//!
//! let turns = OrderedWriter::new(Vec::new());
//! turns.write_text(1, "second, ").unwrap();
//! turns.end_request(1).unwrap();
//! turns.write_text(0, "first, ").unwrap();
//! turns.end_request(0).unwrap();
//! turns.write_text(2, "third").unwrap();
//! assert_eq!(turns.into_inner(), b"first, second, third");
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stream to apt to which several requests write at the same time. Their texts appear in the
/// order of the requests' numbers, which begin at 0.
pub struct OrderedWriter<W>(Mutex<OrderedWriterState<W>>);

struct OrderedWriterState<W> {
    to: W,
    /// The number of the earliest request that has not ended. Texts of this request are written
    /// immediately. Texts of later requests wait in `held`.
    turn: u64,
    held: BTreeMap<u64, PendingAptMessages>,
}

/// The texts of one request that waits until the requests with lower numbers have ended.
#[derive(Default)]
struct PendingAptMessages {
    text: String,
    has_ended: bool,
}

impl<W: Write> OrderedWriter<W> {
    /// Creates a writer that writes to the stream `to`.
    pub fn new(to: W) -> Self {
        Self(Mutex::new(OrderedWriterState { to, turn: 0, held: BTreeMap::new() }))
    }

    /// Writes a text of the request with this number. If an earlier request has not ended, the text
    /// is kept in memory until it has.
    ///
    /// # Errors
    /// The errors of the stream.
    pub fn write_text(&self, number: u64, text: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.held.entry(number).or_default().text.push_str(text);
        state.write_ready()
    }

    /// Marks the request with this number as ended, and writes the texts of the next requests that
    /// waited for it.
    ///
    /// # Errors
    /// The errors of the stream.
    pub fn end_request(&self, number: u64) -> io::Result<()> {
        let mut state = self.lock();
        state.held.entry(number).or_default().has_ended = true;
        state.write_ready()
    }

    /// Returns the underlying stream. Drops the texts of requests that still wait for an earlier
    /// one.
    pub fn into_inner(self) -> W {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).to
    }

    fn lock(&self) -> MutexGuard<'_, OrderedWriterState<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> OrderedWriterState<W> {
    fn write_ready(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.get_mut(&self.turn) {
            let text = std::mem::take(&mut held.text);
            let has_ended = held.has_ended;
            self.to.write_all(text.as_bytes())?;
            if !has_ended {
                break;
            }
            self.held.remove(&self.turn);
            self.turn += 1;
        }
        self.to.flush()
    }
}
