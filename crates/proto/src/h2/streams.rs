//! The open streams, found by number, in the order in which they began.
//!
//! Numbers rise, so a new one goes to the end of a sorted list, and a look-up is a binary search;
//! the streams themselves do not move. Rejected: a queue indexed by number, which is one step
//! faster but grows without bound behind one long download, and a tree, which allocates for each
//! stream.

use super::flow_control::StreamReceiveWindow;
use crate::framing::ResponseFramingContext;
use crate::head::Fields;
use crate::time::Timestamp;
use alloc::vec::Vec;

/// The part of a request's body that the caller has not given to the machine yet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum UploadState {
    /// The caller gave all of the body, and END_STREAM is in the output.
    Finished,
    Known {
        left: u64,
    },
    Open,
    /// The server does not want the rest of the body, and END_STREAM was not sent.
    Abandoned,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ResponsePhase {
    Head,
    /// The body of the response. `expected` is its Content-Length, if there is one. `none` is true
    /// if the response cannot have a body.
    Body {
        expected: Option<u64>,
        got: u64,
        none: bool,
    },
    /// The response is complete, but its request is not: the server continues to read the request.
    Ended,
}

#[derive(Debug)]
pub(crate) struct RequestStreamState {
    pub(crate) response_to: ResponseFramingContext,
    pub(crate) upload: UploadState,
    /// The time at which the wait for `100 Continue` ends; `None` if the request's body does not
    /// wait.
    pub(crate) hold_until: Option<Timestamp>,
    /// The number of bytes that the peer allows the client to send on the stream.
    pub(crate) send_window: i64,
    pub(crate) inbound: StreamReceiveWindow,
    pub(crate) phase: ResponsePhase,
    pub(crate) interim: u32,
    pub(crate) head_bytes: usize,
    /// True if any part of the response on this stream was received.
    pub(crate) started: bool,
    /// True if the response is a success, after which the server continues to read the request.
    pub(crate) reads_on: bool,
    /// The trailers of a response that ended before its request was sent.
    pub(crate) trailers: Option<Fields>,
    /// The position of the request's first byte, counted from the first byte sent on the
    /// connection.
    pub(crate) start: u64,
}

impl RequestStreamState {
    /// Returns the number of bytes of the response's body still to come; `None` if unknown.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.phase {
            ResponsePhase::Body { expected: Some(expected), got, .. } => Some(expected.saturating_sub(got)),
            _ => None,
        }
    }
}

#[derive(Default, Debug)]
pub(crate) struct OpenStreams {
    slots: Vec<Option<RequestStreamState>>,
    free: Vec<u32>,
    /// The stream identifiers in rising order, each with the index of its stream in `slots`.
    index: Vec<(u32, u32)>,
}

impl OpenStreams {
    /// Inserts a stream. Its identifier `id` must be above all others.
    pub(crate) fn insert(&mut self, id: u32, stream: RequestStreamState) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(stream);
        self.index.push((id, slot));
    }

    pub(crate) fn get(&self, id: u32) -> Option<&RequestStreamState> {
        let (_, slot) = self.index[self.place(id)?];
        self.slots[slot as usize].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut RequestStreamState> {
        let (_, slot) = self.index[self.place(id)?];
        self.slots[slot as usize].as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<RequestStreamState> {
        let (_, slot) = self.index.remove(self.place(id)?);
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.index.binary_search_by_key(&id, |&(id, _)| id).ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Iterates over the identifiers of the open streams, in rising order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.index.iter().map(|&(id, _)| id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequestStreamState> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut RequestStreamState> {
        self.slots.iter_mut().flatten()
    }
}
