//! Implements [`ProtocolMachine`] for the HTTP/3 machine, so that requests can be queued and their
//! content added in the same way as on HTTP/1 and HTTP/2.

use std::io;
use std::time::Instant;

use haul_proto::RequestId;
use haul_proto::h3::H3Machine;
use haul_proto::request::{RequestHead, SendRequestError};
use haul_proto::response_head::ProtocolVersion;

use super::super::sending::ProtocolMachine;
use crate::time_conversions;

/// The HTTP/3 machine, together with the ID of the QUIC stream that the next request will use.
pub(super) struct H3MachineForNextStream<'a> {
    pub(super) machine: &'a mut H3Machine,
    pub(super) stream: u64,
}

impl ProtocolMachine for H3MachineForNextStream<'_> {
    fn may_expect_continue(&self) -> bool {
        false
    }

    fn supports_chunked_coding(&self) -> bool {
        false
    }

    fn version(&self, _http10: bool) -> ProtocolVersion {
        ProtocolVersion::Http3
    }

    fn enqueue(&mut self, now: Instant, request: &RequestHead<'_>) -> Result<RequestId, SendRequestError> {
        self.machine.enqueue(time_conversions::to_monotonic_timestamp(now), self.stream, request)
    }

    fn content_credit(&self, id: RequestId) -> Option<u64> {
        self.machine.body_credit(id)
    }

    fn append_content(&mut self, id: RequestId, piece: &[u8]) -> io::Result<()> {
        self.machine.send_body(id, piece).map(drop).map_err(io::Error::other)
    }

    fn end_content(&mut self, id: RequestId, trailers: &[(&str, &[u8])]) -> io::Result<()> {
        self.machine.finish_body(id, trailers).map_err(io::Error::other)
    }
}
