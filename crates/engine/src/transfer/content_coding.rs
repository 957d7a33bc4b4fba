//! Content codings of a transfer: requesting compressed content, and decoding it.

use haul_proto::head::ResponseHead;

use super::Transfer;
use crate::body::is_decodable;

impl Transfer {
    /// Returns true if the request accepts compressed content. Bytes that continue earlier ones
    /// need the same coding. A caller who wants a part of the plain content cannot use a part of
    /// the compressed content.
    pub(super) fn asks_coded(&self) -> bool {
        let options = &self.options;
        options.decode
            && !self.resume.range.is_plain_part()
            && (options.curl_compat.decodes_all || !self.ranges.are_wanted())
    }

    /// Returns true if the response's content is to be decoded.
    pub(super) fn decodes(&self, head: &ResponseHead) -> bool {
        self.options.decode && (self.options.curl_compat.decodes_all || is_decodable(head))
    }
}
