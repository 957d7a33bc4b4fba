//! Content codings of a transfer: whether they are asked for, and whether what comes is decoded.

use haul_proto::head::Head;

use super::Transfer;
use crate::body::is_decodable;

impl Transfer {
    /// Whether compressed content is asked for. Bytes that continue others must be of their coding; and of coded content a part
    /// is of no use to who asked for a part of the plain one.
    pub(super) fn asks_coded(&self) -> bool {
        let options = &self.options;
        options.decode && !self.extent.is_plain_part() && (options.as_curl.decodes_all || !self.wants_part)
    }

    /// Whether what comes is decoded.
    pub(super) fn decodes(&self, head: &Head) -> bool {
        self.options.decode && (self.options.as_curl.decodes_all || is_decodable(head))
    }
}
