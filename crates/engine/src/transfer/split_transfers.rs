//! The transfers of a split download, i.e. of one body over several connections: the first stream
//! and the further parts.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::http3::Http3Policy;
use haul_policy::range::validator::Validator;
use haul_policy::retry::RetryRules;
use haul_policy::target::Scheme;
use haul_proto::response_head::ProtocolVersion;

use super::Transfer;
use super::delivery_range::DeliveryRange;
use super::first_stream_end::FirstStreamEnd;
use super::rate_speed_and_stall_limits::RateSpeedAndStallLimits;
use super::resettable_state::{BodyDisposition, DeliveryProgress};
use crate::Result;
use crate::body::delivery::BodyDelivery;
use crate::buffer_pool::OfferedBodyBytes;
use crate::request::{RequestOptions, SpeedLimit};
use crate::sink::DirectWriteCounter;
use crate::sink::partial::PartialFile;
use crate::transfer_facts::TransferFacts;

/// The minimum speed of a part of a split download: one byte per second, measured over five
/// seconds. A slower part counts as stalled, and its missing bytes are requested again.
const STALLED_PART_SPEED: SpeedLimit = SpeedLimit { bytes_per_second: 1, time: Duration::from_secs(5) };

/// The properties of a body that a split download must know to fetch the body in parts.
#[derive(Debug, Clone)]
pub(crate) struct SplittableBody {
    /// The length of the whole body (the representation) in bytes.
    pub(crate) total: u64,
    /// The strong validator of the representation, which the response for each part must confirm.
    pub(crate) validator: Validator,
}

/// The role of a transfer in a split download. For a transfer with a role, the coordinator of the
/// split download decides about retries.
pub(super) enum SplitRole {
    /// The transfer does not belong to a split download.
    None,
    /// The transfer that began the download, which writes to the sink. It stops at the offset where
    /// another part begins.
    First(Arc<FirstStreamEnd>),
    /// A transfer that fetches a further part of the body.
    Part {
        /// The ID by which the coordinator identifies the part's byte range.
        id: usize,
        /// The sequence number of the request for this part, among all requests for parts of the
        /// split download.
        ordinal: usize,
    },
}

impl SplitRole {
    /// Returns the offset at which the first transfer of a split download stops, if this transfer
    /// is the first one. Returns `None` for all other transfers.
    pub(super) fn end_offset(&self) -> Option<&Arc<FirstStreamEnd>> {
        match self {
            Self::First(end) => Some(end),
            Self::None | Self::Part { .. } => None,
        }
    }
}

impl Transfer {
    /// Determines whether the response's body can be fetched in parts. Returns one of these:
    /// * `Some(Some(..))` with the length and the validator of the body if it can.
    /// * `Some(None)` if it cannot.
    /// * `None` if no head has arrived, or if the body is dropped, such as that of a redirect.
    pub(crate) fn may_split(&self) -> Option<Option<SplittableBody>> {
        if !matches!(self.response.disposition, BodyDisposition::Deliver) {
            return None;
        }
        let head = self.head.as_ref()?;
        let refuses = head.get_all("accept-ranges").any(|value| value.eq_ignore_ascii_case(b"none"));
        let fits = self.ranges.may_request_ranges()
            && matches!(head.status(), 200 | 206)
            && !refuses
            && !self.options.prior_knowledge
            && self.response.skip == 0
            && !self.response.exceeds_range
            && self.progress.range.has_no_content_coding()
            && self.body.is_delivered_as_received();
        Some(
            self.progress
                .range
                .total
                .zip(self.progress.range.validator.clone())
                .filter(|_| fits)
                .map(|(total, validator)| SplittableBody { total, validator }),
        )
    }

    /// Returns the offset in the content of the next byte that the transfer delivers.
    pub(crate) fn position(&self) -> u64 {
        self.progress.range.at
    }

    /// Makes the transfer the first stream of a split download. The transfer then stops at the
    /// offset in `end`. Returns a check of the minimum speed that applies to all transfers of the
    /// split download together.
    pub(crate) fn begin_split(&mut self, end: &Arc<FirstStreamEnd>, now: Instant) -> SplitMinSpeedCheck {
        self.split = SplitRole::First(Arc::clone(end));
        end.set_position(self.progress.range.at);
        let limits = self.speed.take_min_speed(now);
        self.speed.set_min_speed(STALLED_PART_SPEED, now);
        SplitMinSpeedCheck { limits, counted: 0 }
    }

    /// Makes the transfer continue alone after a split download. It continues at its current offset
    /// or, if the sink is a file, at the first missing byte.
    pub(crate) fn end_split(&mut self) {
        self.split = SplitRole::None;
        self.progress.failed_at = self.progress.range.at;
        self.current.skips_redirects = self.current.is_redirected();
        if let Some(gap) = self.body.next_gap() {
            self.progress.range.move_to(gap);
        }
    }

    /// Returns the file of the sink, if ranges of the body may be written to it in any order;
    /// `None` for other sinks.
    pub(crate) fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.body.partial_file()
    }

    /// Returns the sink's counter of bytes that are written directly to the sink's file, and not
    /// through the sink. Returns `None` if the sink has no such counter.
    pub(crate) fn counter(&mut self) -> Option<Arc<dyn DirectWriteCounter>> {
        self.body.counter()
    }

    /// Makes a transfer for the part `id` of this transfer's body: the range `span`. `ordinal`
    /// selects the address of the host to which the part connects first. The part has the TLS
    /// options of this transfer, so that it may use the same connection.
    pub(crate) fn new_part(
        &self,
        body: &SplittableBody,
        span: Range<u64>,
        path: BodyDelivery,
        id: usize,
        ordinal: usize,
        now: Instant,
    ) -> Box<Self> {
        let options = RequestOptions {
            speed_limit: Some(STALLED_PART_SPEED),
            fail: true,
            include_head: false,
            resume_from: None,
            span: None,
            // A part is requested once. A pause that a server requests (Retry-After) must not delay
            // other streams.
            retry: RetryRules { max: 0, ..self.options.retry.clone() },
            // Parts use HTTP/3 if the body began over it. An Alt-Svc field of the first response
            // does not count. The template of later parts has no response, and keeps the choice
            // that was made for it.
            http3: if self.facts.version.is_none_or(|version| version == ProtocolVersion::Http3) {
                self.options.http3
            } else {
                Http3Policy::Off
            },
            ..(*self.options).clone()
        };
        let mut part = Self::new(self.current.target.clone(), Arc::new(options), path, now, ordinal as u64);
        part.particulars.fields.clone_from(&self.particulars.fields);
        part.particulars.max_time = self.particulars.max_time;
        part.auth = self.auth.for_redirect();
        part.current = self.current.for_part();
        (part.attempt.first_started, part.attempt.deadline) = (self.attempt.first_started, self.attempt.deadline);
        part.progress = DeliveryProgress::new(DeliveryRange::for_part(span, body.total, body.validator.clone()));
        part.speed = self.speed.sharing_rate();
        part.ranges.sink_was_asked = true;
        part.split = SplitRole::Part { id, ordinal };
        part
    }

    /// Returns true if the TLS handshake of this transfer's connection offers HTTP/2. The parts of
    /// a split download avoid HTTP/2, because all parts on one HTTP/2 connection would share the
    /// speed of that connection.
    pub(crate) fn offers_http2(&self) -> bool {
        self.current.target.scheme() == Scheme::Https && self.options.tls.alpn.iter().any(|protocol| protocol == b"h2")
    }

    /// Removes HTTP/2 from the protocols that the TLS handshake offers, so that this part of a
    /// split download has its own connection.
    #[must_use]
    pub(crate) fn without_http2(mut self: Box<Self>) -> Box<Self> {
        if self.offers_http2() {
            self.withdraw_http2();
        }
        self
    }

    /// Makes the transfer use HTTP/1.1 for the next request, because the server has refused HTTP/2
    /// (RFC 9113 section 7, HTTP_1_1_REQUIRED). Returns false if the request cannot be sent again.
    pub(crate) fn fall_back_to_http1(&mut self) -> bool {
        let offers_both = self.offers_http2() && self.options.tls.alpn.iter().any(|protocol| protocol == b"http/1.1");
        let is_unanswered = matches!(self.response.disposition, BodyDisposition::Unknown);
        let leaves = offers_both && is_unanswered && self.resend_error().is_none();
        if leaves {
            self.withdraw_http2();
        }
        leaves
    }

    fn withdraw_http2(&mut self) {
        Arc::make_mut(&mut self.options).tls.alpn.retain(|protocol| protocol != b"h2");
    }

    /// Returns the ID of the byte range that this transfer fetches, if the transfer fetches a
    /// further part of a split download; otherwise `None`.
    pub(crate) fn part_id(&self) -> Option<usize> {
        match self.split {
            SplitRole::Part { id, .. } => Some(id),
            SplitRole::None | SplitRole::First(_) => None,
        }
    }

    /// Returns the index of the host's address to which the transfer connects first. The index
    /// differs between the parts of a body, so that the parts use different addresses.
    pub(crate) fn address_index(&self) -> usize {
        match self.split {
            SplitRole::Part { ordinal, .. } => ordinal,
            SplitRole::None | SplitRole::First(_) => 0,
        }
    }

    /// Returns true if the transfer fetches a part of a split download. A part must not share its
    /// connection with transfers that are not parts, because all streams of one connection share
    /// its rate.
    pub(crate) fn wants_own_connection(&self) -> bool {
        self.part_id().is_some()
    }

    /// Returns true if the transfer takes part in a split download: as the transfer that began it,
    /// or by fetching a part.
    pub(crate) fn is_part(&self) -> bool {
        !matches!(self.split, SplitRole::None)
    }

    /// Adds the facts `other` about a further part of the same body to this transfer's facts.
    /// `bytes` is the number of bytes that the part has written directly to the sink's file.
    pub(crate) fn add_part(&mut self, other: &TransferFacts, bytes: u64) {
        self.facts.body_bytes += bytes;
        self.facts.requests += other.requests;
        self.facts.connects += other.connects;
        self.facts.head_bytes += other.head_bytes;
    }

    /// Delivers the next bytes of the body to the sink of this transfer, the first one of a split
    /// download. Another transfer has received these bytes, as a further part of the body.
    ///
    /// # Errors
    /// The errors of [`Transfer::on_body`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.progress.range.at += bytes.len() as u64;
        self.facts.body_bytes += bytes.len() as u64;
        self.body.push(OfferedBodyBytes::borrowed(bytes))
    }

    /// Ends the body after all parts of the split download have arrived.
    ///
    /// # Errors
    /// The sink fails.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.body.finish()
    }
}

/// The check of the minimum speed for all transfers of a split download together. Each transfer
/// checks by itself how long its server is silent.
pub(crate) struct SplitMinSpeedCheck {
    limits: RateSpeedAndStallLimits,
    /// The number of bytes received since the split that the measurement includes.
    counted: u64,
}

impl SplitMinSpeedCheck {
    /// Returns the time at which the caller must call [`SplitMinSpeedCheck::check`] next. Returns
    /// `None` if there is no limit to check.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.limits.next_check()
    }

    /// Returns an error if all transfers of the split download together are slower than the minimum
    /// speed; otherwise `None`. `bytes` is the number of bytes that they have received since the split.
    pub(crate) fn check(&mut self, bytes: u64, now: Instant) -> Option<crate::Error> {
        self.limits.add_to_measurement(bytes.saturating_sub(self.counted));
        self.counted = bytes;
        self.limits.check(now)
    }
}
