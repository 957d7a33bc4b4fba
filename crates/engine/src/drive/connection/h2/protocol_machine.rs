//! Implements [`ProtocolMachine`] and [`ByteStreamMachine`] for the HTTP/2 machine.

use std::io;
use std::time::Instant;

use haul_proto::h2::{H2Machine, RequestId};
use haul_proto::request::{RequestHead, SendRequestError};
use haul_proto::response_head::ProtocolVersion;

use super::super::sending::{ByteStreamMachine, ProtocolMachine};
use crate::time_conversions;

impl ProtocolMachine for H2Machine {
    fn may_expect_continue(&self) -> bool {
        false
    }

    fn supports_chunked_coding(&self) -> bool {
        false
    }

    fn version(&self, _http10: bool) -> ProtocolVersion {
        ProtocolVersion::Http2
    }

    fn enqueue(&mut self, now: Instant, request: &RequestHead<'_>) -> Result<RequestId, SendRequestError> {
        self.enqueue(time_conversions::to_monotonic_timestamp(now), request)
    }

    fn content_credit(&self, id: RequestId) -> Option<u64> {
        self.body_credit(id)
    }

    fn append_content(&mut self, id: RequestId, piece: &[u8]) -> io::Result<()> {
        self.send_body(id, piece).map(drop).map_err(io::Error::other)
    }

    fn fill_content(
        &mut self,
        id: RequestId,
        room: usize,
        read: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        self.fill_body(id, room, read).map_err(io::Error::other)
    }

    fn end_content(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()> {
        self.finish_body(id, trailers).map_err(io::Error::other)
    }
}

impl ByteStreamMachine for H2Machine {
    fn output(&self) -> &[u8] {
        H2Machine::output(self)
    }

    fn advance_output(&mut self, n: usize) {
        H2Machine::advance_output(self, n);
    }
}
