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
    /// True if the requested range begins one byte before `at`, with the last byte that the sink
    /// already has. The range is then never empty, so the response states the total length even if
    /// no byte is missing.
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

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: fn(u64) -> ResponseBodyFraming = ResponseBodyFraming::Length;

    fn head(status: u16, fields: &str) -> ResponseHead {
        ResponseHead::from_raw(format!("HTTP/1.1 {status} X\r\n{fields}\r\n").as_bytes()).unwrap()
    }

    fn validator(tag: &str) -> Validator {
        Validator::strong(Some(tag.as_bytes()), None, None).unwrap()
    }

    /// The range 10 to 19 of 100 bytes with the validator "a".
    fn part() -> DeliveryRange {
        DeliveryRange::for_part(10..20, 100, validator("\"a\""))
    }

    #[test]
    fn range_field_names_the_missing_bytes() {
        let whole = DeliveryRange::starting_at(0);
        assert_eq!((whole.is_ranged(), whole.range_field()), (false, None));
        assert_eq!(DeliveryRange::starting_at(1).range_field().as_deref(), Some("bytes=1-"));
        assert_eq!(part().range_field().as_deref(), Some("bytes=10-19"));
        let opening = RequestOptions { span: Some(WantedContentRange::Opening(0)), ..RequestOptions::default() };
        let opening = DeliveryRange::from_options(&opening);
        assert!(opening.is_unstarted_opening() && opening.is_ranged() && !opening.is_plain_part());
        assert_eq!(opening.range_field().as_deref(), Some("bytes=0-0"));
        let resumed = RequestOptions { resume_from: Some(7), ..RequestOptions::default() };
        assert_eq!(DeliveryRange::from_options(&resumed).range_field().as_deref(), Some("bytes=7-"));
        assert_eq!((part().known_end(), DeliveryRange::starting_at(1).known_end()), (Some(20), None));
        assert!(part().is_plain_part() && part().has_no_content_coding() && part().is_resumable());
    }

    #[test]
    fn range_to_the_end_of_the_content_is_open() {
        let rest = |to| {
            let span = WantedContentRange::Rest { from: 10, to, total: 100, validator: validator("\"a\"") };
            DeliveryRange::from_options(&RequestOptions { span: Some(span), ..RequestOptions::default() })
        };
        for (to, field, end) in [(None, "bytes=10-", 100), (Some(100), "bytes=10-", 100), (Some(20), "bytes=10-19", 20)]
        {
            let range = rest(to);
            assert_eq!((range.range_field().as_deref(), range.known_end()), (Some(field), Some(end)));
            assert!(range.is_resumable());
        }
        let partial = |gap, known| {
            let mut range = DeliveryRange::default();
            range.resume_partial(ExistingPartialContent { gap, known });
            range
        };
        assert_eq!(partial(5..u64::MAX, None).range_field().as_deref(), Some("bytes=5-"));
        let known = || Some((100, validator("\"a\"")));
        assert_eq!(partial(5..100, known()).range_field().as_deref(), Some("bytes=5-"));
        assert_eq!(partial(5..9, known()).range_field().as_deref(), Some("bytes=5-8"));
        let mut range = part();
        range.move_to(40..100);
        assert_eq!((range.at, range.end), (40, None));
        range.move_to(40..50);
        assert_eq!((range.at, range.end), (40, Some(50)));
    }

    #[test]
    fn part_continues_only_with_the_requested_bytes() {
        let good = "Content-Range: bytes 10-19/100\r\nETag: \"a\"\r\n";
        for (fields, framing, expected) in [
            (good, LENGTH(10), RangeVerdict::Continues),
            (good, ResponseBodyFraming::UntilClose, RangeVerdict::Continues),
            (good, LENGTH(9), RangeVerdict::Refused("a part whose length is not that of its range")),
            ("ETag: \"a\"\r\n", LENGTH(10), RangeVerdict::Refused("a part without one valid Content-Range")),
            ("Content-Range: bytes 10-19/*\r\n", LENGTH(10), RangeVerdict::Refused("a part of unknown place or total")),
            ("Content-Range: bytes 10-19/101\r\nETag: \"a\"\r\n", LENGTH(10), RangeVerdict::Changed),
            ("Content-Range: bytes 10-19/100\r\nETag: \"b\"\r\n", LENGTH(10), RangeVerdict::Changed),
            (
                "Content-Range: bytes 10-19/100\r\nContent-Encoding: gzip\r\n",
                LENGTH(10),
                RangeVerdict::Refused("a part of another content coding"),
            ),
            (
                "Content-Range: bytes 11-19/100\r\n",
                LENGTH(9),
                RangeVerdict::Refused("another range than the one that was asked for"),
            ),
            (
                "Content-Range: bytes 10-20/100\r\n",
                LENGTH(11),
                RangeVerdict::Refused("another range than the one that was asked for"),
            ),
        ] {
            assert_eq!(part().verdict(&head(206, fields), framing), expected, "{fields}");
        }
        let twice = head(206, &good.repeat(2));
        assert!(matches!(part().verdict(&twice, LENGTH(10)), RangeVerdict::Refused(_)));
        // Without knowledge, the total may be unknown to the server, too.
        let unknown = head(206, "Content-Range: bytes 5-9/*\r\n");
        assert_eq!(DeliveryRange::starting_at(5).verdict(&unknown, LENGTH(5)), RangeVerdict::Continues);
    }

    #[test]
    fn opening_may_be_shorter_but_needs_a_validator_for_its_rest() {
        let opening = DeliveryRange { end: Some(50), is_opening: true, ..DeliveryRange::default() };
        let answer = |fields: &str, length| opening.verdict(&head(206, fields), LENGTH(length));
        assert_eq!(answer("Content-Range: bytes 0-49/100\r\nETag: \"a\"\r\n", 50), RangeVerdict::Continues);
        assert_eq!(answer("Content-Range: bytes 0-29/30\r\n", 30), RangeVerdict::Continues, "it is everything");
        assert!(matches!(answer("Content-Range: bytes 0-49/100\r\n", 50), RangeVerdict::Refused(_)));
        assert!(matches!(answer("Content-Range: bytes 0-49/*\r\n", 50), RangeVerdict::Refused(_)));
        assert_eq!(opening.verdict(&head(200, ""), LENGTH(100)), RangeVerdict::Ordinary);
        let mut begun = opening.clone();
        begun.on_part(&head(206, "Content-Range: bytes 0-29/30\r\nETag: \"a\"\r\n"));
        assert!(!begun.is_unstarted_opening() && begun.is_resumable());
        assert_eq!((begun.end, begun.total), (Some(30), Some(30)));
    }

    #[test]
    fn whole_content_is_skipped_only_if_it_is_the_same() {
        let answer = |fields: &str, length| part().verdict(&head(200, fields), LENGTH(length));
        assert_eq!(answer("ETag: \"a\"\r\n", 100), RangeVerdict::Repeats(10));
        assert_eq!(answer("ETag: \"a\"\r\n", 99), RangeVerdict::Changed);
        assert_eq!(answer("ETag: \"a\"\r\nContent-Encoding: gzip\r\n", 100), RangeVerdict::Changed);
        assert_eq!(answer("ETag: \"b\"\r\n", 100), RangeVerdict::Changed);
        assert!(matches!(answer("", 100), RangeVerdict::Refused(_)));
        let chunked = part().verdict(&head(200, "ETag: \"a\"\r\n"), ResponseBodyFraming::UntilClose);
        assert_eq!(chunked, RangeVerdict::Repeats(10));
        let unknown = DeliveryRange::starting_at(10).verdict(&head(200, ""), LENGTH(100));
        assert_eq!(unknown, RangeVerdict::Refused("the whole instead of a range"));
        let whole = DeliveryRange::starting_at(0);
        assert_eq!(whole.verdict(&head(200, ""), LENGTH(100)), RangeVerdict::Ordinary);
        assert_eq!(whole.verdict(&head(416, ""), LENGTH(0)), RangeVerdict::Ordinary);
    }

    #[test]
    fn unsatisfied_range_is_complete_only_at_the_end() {
        let known =
            DeliveryRange { at: 100, total: Some(100), validator: Some(validator("\"a\"")), ..Default::default() };
        let answer = |range: &DeliveryRange, fields: &str| range.verdict(&head(416, fields), LENGTH(0));
        assert_eq!(answer(&known, "Content-Range: bytes */100\r\n"), RangeVerdict::Complete);
        assert_eq!(answer(&known, "Content-Range: bytes */100\r\nETag: \"b\"\r\n"), RangeVerdict::Changed);
        assert_eq!(answer(&known, "Content-Range: bytes */101\r\n"), RangeVerdict::Changed);
        assert_eq!(answer(&known, ""), RangeVerdict::Refused("no such range, and not how long it is"));
        let early = DeliveryRange { at: 99, ..known.clone() };
        assert_eq!(
            answer(&early, "Content-Range: bytes */100\r\n"),
            RangeVerdict::Refused("that there is no such range")
        );
        for (end, expected) in
            [(100, RangeVerdict::Complete), (90, RangeVerdict::Refused("that there is no such range"))]
        {
            let ended = DeliveryRange { end: Some(end), ..known.clone() };
            assert_eq!(answer(&ended, "Content-Range: bytes */100\r\n"), expected);
        }
    }

    #[test]
    fn last_byte_is_requested_once_if_the_length_is_missing() {
        let mut range = DeliveryRange::starting_at(100);
        assert!(!range.should_request_last_byte(&head(416, "Content-Range: bytes */100\r\n")));
        assert!(!range.should_request_last_byte(&head(404, "")));
        for known in [DeliveryRange::starting_at(0), part(), DeliveryRange { end: Some(200), ..range.clone() }] {
            assert!(!known.clone().should_request_last_byte(&head(416, "")));
        }
        assert!(range.should_request_last_byte(&head(416, "")));
        assert_eq!(range.range_field().as_deref(), Some("bytes=99-"));
        assert!(!range.should_request_last_byte(&head(416, "")), "only once");
        let answer = |fields: &str, length| range.verdict(&head(206, fields), LENGTH(length));
        assert_eq!(answer("Content-Range: bytes 99-99/100\r\n", 1), RangeVerdict::Complete);
        assert_eq!(answer("Content-Range: bytes 99-109/110\r\n", 11), RangeVerdict::Changed);
    }

    #[test]
    fn whole_response_announces_length_validator_and_coding() {
        let mut range = DeliveryRange::default();
        range.on_whole(&head(200, "ETag: \"a\"\r\nContent-Encoding: GZip\r\n"), LENGTH(100));
        assert_eq!((range.total, range.known_end(), range.is_resumable()), (Some(100), Some(100), true));
        assert!(!range.has_no_content_coding());
        range.on_whole(&head(200, "ETag: W/\"a\"\r\nContent-Encoding: identity\r\n"), ResponseBodyFraming::UntilClose);
        assert_eq!((range.total, range.is_resumable()), (None, false));
        assert!(range.has_no_content_coding());
        assert_eq!(content_coding(&head(200, "Content-Encoding: gzip\r\nContent-Encoding: BR\r\n")), b"gzip,br");
        assert_eq!(content_coding(&head(200, "")), b"");
    }

    #[test]
    fn other_range_than_the_requested_one_contradicts() {
        for (range, asked, expected) in [
            ("bytes 0-99/200", "0-99", false),
            ("bytes 0-98/200", "0-99", true),
            ("bytes 1-99/200", "0-99", true),
            ("bytes 0-49/50", "0-99", false),
            ("bytes 0-48/50", "0-99", true),
            ("bytes 0-99/*", "0-99", false),
            ("bytes 0-98/*", "0-99", true),
            ("bytes 100-199/200", "100-", false),
            ("bytes 100-198/200", "100-", true),
            ("bytes 101-199/200", "100-", true),
            ("bytes 100-199/*", "100-", false),
            ("bytes 150-199/200", "-50", false),
            ("bytes 151-199/200", "-50", true),
            ("bytes 0-29/30", "-50", false),
            ("bytes 150-199/*", "-50", false),
            ("bytes 7-8/9", "0-1,3-4", false),
            ("bytes 7-8/9", "x", false),
            ("bytes 7-8/9", "0-x", false),
            ("bytes 7-8/9", "x-1", false),
            ("bytes */9", "0-1", false),
        ] {
            let head = head(206, &format!("Content-Range: {range}\r\n"));
            assert_eq!(contradicts(&head, asked), expected, "{range} {asked}");
        }
        assert!(!contradicts(&head(206, ""), "0-1"));
    }
}
