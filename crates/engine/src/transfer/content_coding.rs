//! The content codings of a transfer: whether compressed content is requested and decoded.

use haul_proto::head::ResponseHead;

use super::Transfer;
use crate::body::is_decodable;

impl Transfer {
    /// Returns true if the request asks for compressed content. It does not if a part of the
    /// content is wanted, or if the sink already has a part of the content without a coding. A part
    /// of compressed content would not fit to these.
    pub(super) fn asks_coded(&self) -> bool {
        let options = &self.options;
        options.decode
            && !self.resume.range.is_plain_part()
            && (options.curl_compat.decodes_all || !self.ranges.are_wanted())
    }

    /// Returns true if the response's content must be decoded.
    pub(super) fn decodes(&self, head: &ResponseHead) -> bool {
        self.options.decode && (self.options.curl_compat.decodes_all || is_decodable(head))
    }
}
