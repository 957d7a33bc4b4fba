//! The queue for request content that the program supplies. The program's thread adds to it, and
//! the engine's thread takes from it.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::transfer_event_queue::TransferEventQueue;
use crate::codes::{CURLE_ABORTED_BY_CALLBACK, CURLE_READ_ERROR, CURLE_SEND_FAIL_REWIND};
use crate::handle_table::lock;
use crate::transfer::easy_driver::trailers;
use crate::transfer::request_content_segments::{ContentRead, RequestContentReader};
use crate::transfer::running::{PAUSE_SEND, RunningTransfer};

/// The number of unsent bytes in the queue above which the C program is not asked for more request
/// content.
const MAX_UNSENT: usize = 128 << 10;
/// The maximum number of bytes that are read from the C program at once.
const PIECE: usize = 64 << 10;

/// The name and the value of a trailer field.
type TrailerField = (String, Vec<u8>);

#[derive(Default)]
struct UploadQueueState {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The end of the content: `None` before the C program has reached it, `Some(Ok)` after it, and
    /// `Some(Err)` if the C program could not supply the content.
    end: Option<Result<(), ()>>,
    /// True after the engine has first asked for content.
    is_wanted: bool,
    /// The number of times that the engine has begun to send the content.
    begun: u64,
    /// True if the engine sends the content again, and the C program has not rewound it yet.
    needs_rewind: bool,
    waker: Option<Waker>,
    trailers: Vec<TrailerField>,
}

/// The queue of request content from the C program's thread, which supplies it, to the engine's
/// thread, which sends it.
pub(super) struct UploadQueue {
    state: Mutex<UploadQueueState>,
    events: Arc<TransferEventQueue>,
}

impl UploadQueue {
    pub(super) fn new(events: Arc<TransferEventQueue>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), events })
    }

    /// Returns the trailer fields that the C program supplied at the end of the content.
    pub(super) fn trailers(&self) -> Vec<TrailerField> {
        lock(&self.state).trailers.clone()
    }

    /// Begins to send the content, and returns the stream of it. If the content was sent before,
    /// asks the C program to rewind it (`CURLOPT_SEEKFUNCTION`) before the first read.
    pub(super) fn open(self: &Arc<Self>) -> UploadStream {
        let mut state = lock(&self.state);
        let begun = state.begun + 1;
        *state = UploadQueueState { begun, needs_rewind: begun > 1, ..UploadQueueState::default() };
        UploadStream { queue: Arc::clone(self), number: begun }
    }

    /// Returns the number of the stream that wants content, and true if the C program must rewind
    /// the content first. Returns `None` if no content is wanted.
    fn wanted(&self) -> Option<(u64, bool)> {
        let state = lock(&self.state);
        let wants = state.is_wanted && state.end.is_none() && state.bytes < MAX_UNSENT;
        wants.then_some((state.begun, state.needs_rewind))
    }

    /// Changes the state, unless the engine has begun to send the content again after the stream
    /// with this number.
    fn change(&self, number: u64, change: impl FnOnce(&mut UploadQueueState)) {
        let mut state = lock(&self.state);
        if state.begun != number {
            return;
        }
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Reads content from the C program into the queue, until the queue has enough or the program
    /// pauses.
    pub(super) fn fill_from_program(&self, source: &mut RequestContentReader, running: &RunningTransfer) {
        let mut buffer = Vec::new();
        while let Some((number, needs_rewind)) = self.wanted() {
            if running.is_paused(PAUSE_SEND) || running.has_failed() {
                return;
            }
            if needs_rewind {
                if !source.rewind() {
                    running.fail(CURLE_SEND_FAIL_REWIND, "necessary data rewind was not possible");
                    self.change(number, |state| state.end = Some(Err(())));
                    return;
                }
                running.change_progress(|progress| progress.up = 0);
                self.change(number, |state| state.needs_rewind = false);
                continue;
            }
            buffer.resize(PIECE, 0);
            match source.read(&mut buffer) {
                ContentRead::Bytes(n) => {
                    let piece = buffer[..n].to_vec();
                    running.change_progress(|progress| progress.up += n as u64);
                    self.change(number, |state| {
                        state.bytes += n;
                        state.pieces.push_back(piece);
                    });
                }
                ContentRead::End => {
                    let fields = trailers(running);
                    self.change(number, |state| {
                        state.end = Some(fields.as_ref().map(|_| ()).map_err(|_| ()));
                        state.trailers = fields.unwrap_or_default();
                    });
                }
                ContentRead::Pause => running.pause_sending(),
                ContentRead::Abort => {
                    running.fail(CURLE_ABORTED_BY_CALLBACK, "operation aborted by callback");
                    self.change(number, |state| state.end = Some(Err(())));
                }
                ContentRead::Failed => {
                    running.fail(CURLE_READ_ERROR, "read function returned funny value");
                    self.change(number, |state| state.end = Some(Err(())));
                }
            }
        }
    }
}

/// The content stream from which the engine takes the content in the queue.
pub(super) struct UploadStream {
    queue: Arc<UploadQueue>,
    /// The number of this stream among the streams of the queue, from 1. The engine opens a new
    /// stream each time it begins to send the content. Older streams then fail.
    number: u64,
}

impl Stream for UploadStream {
    type Item = Result<Vec<u8>, io::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = lock(&self.queue.state);
        if state.begun != self.number {
            return Poll::Ready(Some(Err(io::Error::other("the content is being sent again"))));
        }
        if let Some(piece) = state.pieces.pop_front() {
            state.bytes -= piece.len();
            drop(state);
            self.queue.events.set_ready();
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end {
            Some(Ok(())) => return Poll::Ready(None),
            Some(Err(())) => return Poll::Ready(Some(Err(io::Error::other("the program ended the content")))),
            None => {}
        }
        state.is_wanted = true;
        state.waker = Some(context.waker().clone());
        drop(state);
        self.queue.events.set_ready();
        Poll::Pending
    }
}
