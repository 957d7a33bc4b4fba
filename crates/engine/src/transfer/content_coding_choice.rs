//! Decides whether a transfer requests compressed content, and whether it decodes that content.

use haul_proto::response_head::ResponseHead;

use super::Transfer;
use crate::body::{is_decodable, meaningful_codings};

impl Transfer {
    /// Returns true if the request asks for compressed content. Returns false if it asks for only a
    /// part of the content, because a part of compressed content cannot be decoded, or be appended
    /// to uncompressed bytes.
    pub(super) fn requests_content_coding(&self) -> bool {
        let options = &self.options;
        options.decode
            && !self.progress.range.is_plain_part()
            && (options.curl_compat.strict_content_coding || !self.ranges.should_request_ranges())
    }

    /// Returns true if the content of the response with this head must be decoded before it is
    /// delivered.
    pub(super) fn decodes_content(&self, head: &ResponseHead) -> bool {
        self.options.decode && (self.options.curl_compat.strict_content_coding || is_decodable(head))
    }

    /// Returns the content codings of the response with this head, as a list for the decoder.
    /// Leaves out names that are no codings, such as `aws-chunked`. If `curl_compat.strict_content_coding` is
    /// set, these names remain in the list, and the body fails.
    pub(super) fn content_codings(&self, head: &ResponseHead) -> Vec<u8> {
        let written = head.get_all("content-encoding").collect::<Vec<_>>().join(&b", "[..]);
        if self.options.curl_compat.strict_content_coding { written } else { meaningful_codings(&written) }
    }
}
