//! The byte range of a representation that a transfer delivers, and the current offset in that
//! range. They allow the transfer to resume an interrupted response at the exact byte, and ensure
//! that all parts of a split body belong to the same representation.
//!
//! ```text
//!  0                           at                    end            total
//!  ├────────────────────────────┼─────────────────────┼───────────────┤
//!    delivered, or not wanted     asked for by Range      not wanted
//! ```
//!
//! A response may continue where another broke off only if it is provably of the same
//! representation: a 206 with exactly the requested bytes, the same total, and the strong validator
//! that was sent as `If-Range` (RFC 9110 sections 13.1.5 and 15.3.7). A 200 with the same strong
//! validator is accepted, too; the bytes that were delivered already are skipped.

use haul_policy::range::content_range;
use haul_policy::range::validator::{Validator, ValidatorMatch};
use haul_proto::h1::ResponseBodyFraming;
use haul_proto::response_head::ResponseHead;

use crate::request::{RequestOptions, WantedContentRange};
use crate::sink::ExistingPartialContent;

/// The byte range of a representation that a transfer delivers, and the offset of the next byte to
/// deliver.
#[derive(Debug, Clone, Default)]
pub(super) struct DeliveryRange {
    /// The offset in the representation after the last byte to deliver. `None` stands for the end
    /// of the representation.
    pub(super) end: Option<u64>,
    /// The offset in the representation of the next byte to deliver.
    pub(super) at: u64,
    /// The length of the representation in bytes. `None` before a response has announced it.
    pub(super) total: Option<u64>,
    /// The strong validator of the representation. `None` before a response has announced a
    /// validator.
    pub(super) validator: Option<Validator>,
    /// The content coding of the bytes delivered so far, empty for no coding. `None` before the
    /// first response.
    coding: Option<Vec<u8>>,
    /// True if the range is the beginning of content whose length is unknown
    /// ([`WantedContentRange::Opening`]). The content may be shorter than the range.
    is_opening: bool,
    /// True if the request asks for one byte more than is missing: the last byte that the sink
    /// already has. The response then states the total length even if nothing is missing.
    requests_last_byte: bool,
}

/// The relation between a response and the range that was requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeVerdict {
    /// The response has nothing to do with a requested range. The transfer handles it by its
    /// status.
    Ordinary,
    /// The response contains exactly the requested bytes. The delivery continues with them.
    Continues,
    /// The response contains the same representation from its beginning. The transfer must skip
    /// this number of bytes at the beginning, which were delivered before.
    Repeats(u64),
    /// The sink already has all bytes of the requested range.
    Complete,
    /// The representation has changed on the server since the earlier bytes were received.
    Changed,
    /// The transfer cannot use the response, because the server supports ranges incorrectly or not
    /// at all. The text is the reason.
    Refused(&'static str),
}

impl DeliveryRange {
    /// Makes the range from the offset `first` to the end of the representation.
    pub(super) fn starting_at(first: u64) -> Self {
        Self { at: first, ..Self::default() }
    }

    /// Makes the range that the options of the request select: the whole representation, or a part
    /// of it.
    pub(super) fn from_options(options: &RequestOptions) -> Self {
        match &options.span {
            None => Self::starting_at(options.resume_from.unwrap_or(0)),
            Some(WantedContentRange::Opening(bytes)) => {
                Self { end: Some((*bytes).max(1)), is_opening: true, ..Self::default() }
            }
            Some(WantedContentRange::Rest { from, to, total, validator }) => Self {
                at: *from,
                end: to.filter(|end| end != total),
                total: Some(*total),
                validator: Some(validator.clone()),
                ..Self::default()
            },
        }
    }

    /// Makes the range `span` of a representation with the known length `total` and a known
    /// validator.
    pub(super) fn for_part(span: std::ops::Range<u64>, total: u64, validator: Validator) -> Self {
        Self {
            end: Some(span.end),
            at: span.start,
            total: Some(total),
            validator: Some(validator),
            coding: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Sets the range to the bytes that the sink still needs. `partial` describes the part of the
    /// content that the sink already has.
    pub(super) fn resume_partial(&mut self, partial: ExistingPartialContent) {
        *self = match partial.known {
            Some((total, validator)) => Self::for_part(partial.gap, total, validator),
            None => Self::starting_at(partial.gap.start),
        };
        self.end = self.end.filter(|&end| Some(end) != self.total);
    }

    /// Sets the range to `gap`, the next bytes that are missing in the sink's file.
    pub(super) fn move_to(&mut self, gap: std::ops::Range<u64>) {
        self.at = gap.start;
        self.end = Some(gap.end).filter(|&end| Some(end) != self.total);
    }

    /// Returns true if the next request must ask for the rest of the content without content
    /// coding, because the bytes delivered so far have no coding.
    pub(super) fn is_plain_part(&self) -> bool {
        self.is_ranged() && self.coding.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns true if a further request can fetch the rest of the range after the response breaks
    /// off.
    pub(super) fn is_resumable(&self) -> bool {
        self.validator.is_some()
    }

    /// Returns true if the content delivered so far has no content coding.
    pub(super) fn has_no_content_coding(&self) -> bool {
        self.coding.as_ref().is_none_or(Vec::is_empty)
    }

    /// Returns true if the request needs a Range field, because only a part of the content is
    /// wanted.
    pub(super) fn is_ranged(&self) -> bool {
        self.at > 0 || self.end.is_some()
    }

    /// Returns the value of the Range field. Returns `None` if the request needs no such field.
    pub(super) fn range_field(&self) -> Option<String> {
        self.is_ranged().then(|| match self.end {
            Some(end) => format!("bytes={}-{}", self.at, end.saturating_sub(1)),
            None => format!("bytes={}-", self.first_requested()),
        })
    }

    /// Returns the offset of the first byte that the Range field of the request asks for.
    fn first_requested(&self) -> u64 {
        self.at - u64::from(self.requests_last_byte)
    }

    /// Returns true if a 416 response to a request for the missing bytes lacks the total length.
    /// The request should then be repeated with a range that begins one byte earlier, at the last
    /// byte that the sink already has: the response to that request contains the total length. This
    /// is necessary once for servers, such as Apache and lighttpd, that omit the length despite RFC
    /// 9110 section 15.5.17.
    pub(super) fn should_request_last_byte(&mut self, head: &ResponseHead) -> bool {
        let is_open = self.at > 0 && self.end.is_none() && self.total.is_none();
        let may = head.status() == 416 && is_open && content_range_of(head).is_none() && !self.requests_last_byte;
        self.requests_last_byte |= may;
        may
    }

    /// Returns the offset after the last byte of the range. Returns `None` if it is not known.
    pub(super) fn known_end(&self) -> Option<u64> {
        self.end.or(self.total)
    }

    /// Stores the length and the validator of the representation that a response with status 200
    /// announces.
    pub(super) fn on_whole(&mut self, head: &ResponseHead, framing: ResponseBodyFraming) {
        *self = Self {
            total: match framing {
                ResponseBodyFraming::Length(length) => Some(length),
                _ => None,
            },
            validator: strong_validator(head),
            coding: Some(content_coding(head)),
            ..Self::default()
        };
    }

    /// Stores the total length of the representation that a 206 response with the requested range
    /// announces.
    pub(super) fn on_part(&mut self, head: &ResponseHead) {
        if let Some(range) = content_range_of(head) {
            self.total = range.total;
        }
        if self.validator.is_none() {
            self.validator = strong_validator(head);
        }
        self.coding.get_or_insert_with(|| content_coding(head));
        self.end = self.end_within(self.total);
        self.is_opening = false;
    }

    /// Returns true if the caller wants only the beginning of the content
    /// ([`WantedContentRange::Opening`]), and no byte of it has arrived.
    pub(super) fn is_unstarted_opening(&self) -> bool {
        self.is_opening
    }

    /// Returns the offset after the last byte of the range, given the length `total` of the
    /// representation. Returns `None` if the offset is not known.
    fn end_within(&self, total: Option<u64>) -> Option<u64> {
        match (self.end, total) {
            (Some(end), Some(total)) if self.is_opening => Some(end.min(total)),
            (end, _) => end,
        }
    }

    /// Compares a response with the requested range, and decides how the transfer can use the
    /// response.
    pub(super) fn verdict(&self, head: &ResponseHead, framing: ResponseBodyFraming) -> RangeVerdict {
        match (head.status(), self.is_ranged()) {
            (206, _) => self.verdict_on_206(head, framing),
            (200, true) if !self.is_opening => self.verdict_on_200(head, framing),
            (416, true) => self.verdict_on_416(head),
            _ => RangeVerdict::Ordinary,
        }
    }

    /// Compares a response with status 206 with the requested range, and decides how the transfer
    /// can use the response.
    fn verdict_on_206(&self, head: &ResponseHead, framing: ResponseBodyFraming) -> RangeVerdict {
        let Some(range) = content_range_of(head) else {
            return RangeVerdict::Refused("a part without one valid Content-Range");
        };
        // If nothing is known yet, the last part may be accepted even if the server does not know
        // the total length.
        let is_all = self.total.is_none() && self.end.is_none() && self.validator.is_none() && !self.is_opening;
        let total = range.total.or_else(|| range.span.as_ref().filter(|_| is_all).map(|span| span.end));
        let (Some(span), Some(total)) = (range.span, total) else {
            return RangeVerdict::Refused("a part of unknown place or total");
        };
        if self.total.is_some_and(|known| known != total) || self.compare_validator(head) == ValidatorMatch::Different {
            return RangeVerdict::Changed;
        }
        if self.coding.as_ref().is_some_and(|known| *known != content_coding(head)) {
            return RangeVerdict::Refused("a part of another content coding");
        }
        if span.start != self.first_requested() || span.end != self.end_within(Some(total)).unwrap_or(total) {
            return RangeVerdict::Refused("another range than the one that was asked for");
        }
        if self.is_opening && span.end < total && strong_validator(head).is_none() {
            return RangeVerdict::Refused("a beginning whose rest cannot be told from that of another content");
        }
        match framing {
            ResponseBodyFraming::Length(length) if length != span.end - span.start => {
                RangeVerdict::Refused("a part whose length is not that of its range")
            }
            _ if self.requests_last_byte && span.end == self.at => RangeVerdict::Complete,
            _ if self.requests_last_byte => RangeVerdict::Changed,
            _ => RangeVerdict::Continues,
        }
    }

    /// Compares a response with status 200 with the requested range, and decides how the transfer
    /// can use the response.
    fn verdict_on_200(&self, head: &ResponseHead, framing: ResponseBodyFraming) -> RangeVerdict {
        if self.validator.is_none() {
            return RangeVerdict::Refused("the whole instead of a range");
        }
        let other_length = match (framing, self.total) {
            (ResponseBodyFraming::Length(length), Some(total)) => length != total,
            _ => false,
        };
        let other_coding = self.coding.as_ref().is_some_and(|known| *known != content_coding(head));
        match self.compare_validator(head) {
            ValidatorMatch::Same if !other_length && !other_coding => RangeVerdict::Repeats(self.at),
            ValidatorMatch::Unsaid => {
                RangeVerdict::Refused("the whole instead of a range, and not of which representation")
            }
            _ => RangeVerdict::Changed,
        }
    }

    /// Compares a response with status 416 with the requested range, and decides how the transfer
    /// can use the response.
    fn verdict_on_416(&self, head: &ResponseHead) -> RangeVerdict {
        let Some(total) = content_range_of(head).and_then(|range| range.total) else {
            return RangeVerdict::Refused("no such range, and not how long it is");
        };
        let same =
            self.total.is_none_or(|known| known == total) && self.compare_validator(head) != ValidatorMatch::Different;
        match () {
            () if !same => RangeVerdict::Changed,
            () if self.at == total && self.end.is_none_or(|end| end == total) => RangeVerdict::Complete,
            () => RangeVerdict::Refused("that there is no such range"),
        }
    }

    /// Compares the known validator of the representation with the validators of a response. The
    /// result tells whether the representation is the same.
    fn compare_validator(&self, head: &ResponseHead) -> ValidatorMatch {
        self.validator
            .as_ref()
            .map_or(ValidatorMatch::Unsaid, |validator| validator.compare(head.get("etag"), head.get("last-modified")))
    }
}

/// Returns the strong validator of a response, or `None`. Looks for a strong entity-tag first,
/// because most responses have one, and this function is called for every response with a body.
fn strong_validator(head: &ResponseHead) -> Option<Validator> {
    let etag = head.get("etag");
    Validator::strong(etag, None, None)
        .or_else(|| Validator::strong(etag, Some(head.get("last-modified")?), Some(head.get("date")?)))
}

/// Returns the parsed Content-Range of a response that has exactly one valid Content-Range;
/// otherwise `None`.
fn content_range_of(head: &ResponseHead) -> Option<content_range::ContentRange> {
    let mut fields = head.get_all("content-range");
    let (only, None) = (fields.next()?, fields.next()) else { return None };
    content_range::parse(only)
}

/// Returns true if a 206 response contains a range other than `asked` (RFC 9110 section 15.3.7).
/// `asked` is the requested range, such as `0-99`, `100-` or `-50`. Returns false if `asked` has
/// several ranges, or if the response does not say which range it contains.
pub(super) fn contradicts(head: &ResponseHead, asked: &str) -> bool {
    let Some(content_range::ContentRange { span: Some(span), total }) = content_range_of(head) else { return false };
    let Some((first, last)) = asked.split_once('-') else { return false };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) => {
            let end = last.saturating_add(1);
            span.start != first || span.end != total.map_or(end, |total| total.min(end))
        }
        (Some(first), None) if last.trim().is_empty() => {
            span.start != first || total.is_some_and(|total| total != span.end)
        }
        (None, Some(length)) if first.trim().is_empty() => {
            total.is_some_and(|total| span != (total.saturating_sub(length)..total))
        }
        _ => false,
    }
}

/// Returns the value of Content-Encoding of a response. Empty if the field is missing.
fn content_coding(head: &ResponseHead) -> Vec<u8> {
    let mut text = Vec::new();
    for (index, value) in head.get_all("content-encoding").enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend(value.iter().map(u8::to_ascii_lowercase));
    }
    let trimmed = text.trim_ascii();
    if trimmed == b"identity" { Vec::new() } else { trimmed.to_vec() }
}
