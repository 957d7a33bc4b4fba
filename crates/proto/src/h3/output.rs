//! The output of an HTTP/3 connection: the bytes to send on the client's unidirectional streams and
//! on its request streams.

use super::machine::H3Machine;
use super::{H3Output, H3SendStream, RequestId};
use crate::open_streams::OpenStreams;
use crate::output_buffer::OutputBuffer;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The output of a critical stream (control or QPACK), which lasts as long as the connection.
#[derive(Default, Debug)]
pub(crate) struct CriticalStreamOutput {
    pub(crate) buffer: OutputBuffer,
    is_blocked: bool,
}

/// The unsent output of a request's stream.
#[derive(Default, Debug)]
pub(crate) struct RequestOutput {
    buffer: OutputBuffer,
    /// True if the stream ends after the bytes in the buffer.
    fin: bool,
    is_blocked: bool,
    /// True if the request has bytes to send and is not blocked, so that its id is in
    /// [`H3Outputs::ready`].
    is_ready: bool,
}

/// The bytes to send on all streams of a connection: one output for each stream.
#[derive(Default, Debug)]
pub(crate) struct H3Outputs {
    pub(crate) control: CriticalStreamOutput,
    pub(crate) encoder: CriticalStreamOutput,
    pub(crate) decoder: CriticalStreamOutput,
    requests: OpenStreams<u64, RequestOutput>,
    /// The ids of the requests that have bytes to send and are not blocked, in the order in which
    /// they send next.
    ready: VecDeque<u64>,
}

impl H3Outputs {
    /// Returns the number of requests that have not been sent completely.
    pub(crate) fn unsent_requests(&self) -> usize {
        self.requests.len()
    }

    /// Adds an empty output for a request's stream.
    pub(crate) fn add_request(&mut self, id: u64) {
        self.requests.insert(id, RequestOutput::default());
    }

    /// Returns the number of unsent bytes in this request's output; `None` if the request was sent
    /// completely.
    pub(crate) fn pending_bytes(&self, id: u64) -> Option<usize> {
        self.requests.get(id).map(|request| request.buffer.pending().len())
    }

    /// Returns `true` if QUIC has accepted at least one byte of this request.
    pub(crate) fn has_sent_any_of(&self, id: u64) -> bool {
        self.requests.get(id).is_none_or(|request| request.buffer.sent_bytes() > 0)
    }

    /// Calls `write` to append bytes to the output of a request. If `fin` is true, the stream ends
    /// after these bytes.
    pub(crate) fn append(&mut self, id: u64, fin: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(request) = self.requests.get_mut(id) else { return };
        write(request.buffer.append_buffer());
        request.fin |= fin;
        if !request.is_blocked && !request.is_ready {
            request.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Drops the output of a request. Returns `true` if the request was not sent completely.
    pub(crate) fn drop_request(&mut self, id: u64) -> bool {
        let Some(request) = self.requests.remove(id) else { return false };
        if request.is_ready {
            self.remove_from_ready(id);
        }
        true
    }

    fn next_output(&self) -> Option<H3Output<'_>> {
        for (stream, output) in [
            (H3SendStream::Control, &self.control),
            (H3SendStream::QpackEncoder, &self.encoder),
            (H3SendStream::QpackDecoder, &self.decoder),
        ] {
            let bytes = output.buffer.pending();
            if !bytes.is_empty() && !output.is_blocked {
                return Some(H3Output { stream, bytes, fin: false });
            }
        }
        let &id = self.ready.front()?;
        let request = self.requests.get(id)?;
        let stream = H3SendStream::Request(RequestId(id));
        Some(H3Output { stream, bytes: request.buffer.pending(), fin: request.fin })
    }

    fn advance_request(&mut self, id: u64, n: usize) {
        let Some(request) = self.requests.get_mut(id) else { return };
        request.buffer.advance(n);
        if !request.buffer.pending().is_empty() {
            return;
        }
        if request.fin {
            self.drop_request(id);
        } else if core::mem::take(&mut request.is_ready) {
            self.remove_from_ready(id);
        }
    }

    /// Removes a request from `ready`, the requests that may send. In most cases, it is the first
    /// one there.
    fn remove_from_ready(&mut self, id: u64) {
        if self.ready.front() == Some(&id) {
            self.ready.pop_front();
        } else {
            self.ready.retain(|&other| other != id);
        }
    }

    fn set_blocked(&mut self, id: u64, is_blocked: bool) {
        let Some(request) = self.requests.get_mut(id) else { return };
        request.is_blocked = is_blocked;
        let has_output = request.fin || !request.buffer.pending().is_empty();
        let is_ready = has_output && !is_blocked;
        if is_ready != core::mem::replace(&mut request.is_ready, is_ready) {
            if is_ready {
                self.ready.push_back(id);
            } else {
                self.remove_from_ready(id);
            }
        }
    }
}

impl H3Machine {
    /// Returns the next bytes to write, with the stream to write them to. Returns `None` if nothing
    /// is to be sent, or only on streams that QUIC has [blocked](H3Machine::block_output). The
    /// control stream and the QPACK streams come first, then the requests by turns.
    pub fn next_output(&self) -> Option<H3Output<'_>> {
        if self.has_failed_or_ended() { None } else { self.outputs.next_output() }
    }

    /// Records that QUIC accepted the first `n` bytes of this stream's output. If no output is left
    /// and [`H3Output::fin`] was true, the caller must also finish the stream in QUIC.
    pub fn advance_output(&mut self, stream: H3SendStream, n: usize) {
        match stream {
            H3SendStream::Control => self.outputs.control.buffer.advance(n),
            H3SendStream::QpackEncoder => self.outputs.encoder.buffer.advance(n),
            H3SendStream::QpackDecoder => self.outputs.decoder.buffer.advance(n),
            H3SendStream::Request(RequestId(id)) => self.outputs.advance_request(id, n),
        }
    }

    /// Records that QUIC accepts no more bytes of this stream at present.
    /// [`H3Machine::next_output`] skips the stream until [`H3Machine::unblock_output`].
    pub fn block_output(&mut self, stream: H3SendStream) {
        self.set_blocked(stream, true);
    }

    /// Records that QUIC accepts bytes of this stream again.
    pub fn unblock_output(&mut self, stream: H3SendStream) {
        self.set_blocked(stream, false);
    }

    fn set_blocked(&mut self, stream: H3SendStream, is_blocked: bool) {
        match stream {
            H3SendStream::Control => self.outputs.control.is_blocked = is_blocked,
            H3SendStream::QpackEncoder => self.outputs.encoder.is_blocked = is_blocked,
            H3SendStream::QpackDecoder => self.outputs.decoder.is_blocked = is_blocked,
            H3SendStream::Request(RequestId(id)) => self.outputs.set_blocked(id, is_blocked),
        }
    }

    /// Returns `true` if [`H3Machine::next_output`] would return bytes or the end of a stream.
    pub fn has_output(&self) -> bool {
        self.next_output().is_some()
    }
}
