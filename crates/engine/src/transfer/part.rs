//! A transfer among others of the same body: one that is split, and its parts.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::range::validator::Validator;
use haul_policy::retry::RetryRules;
use haul_policy::target::Scheme;

use super::cut::Cut;
use super::extent::Extent;
use super::pace::Pace;
use super::{Disposition, Transfer};
use crate::Result;
use crate::body::path::BodyPath;
use crate::buffer::Lease;
use crate::facts::Facts;
use crate::request::{RequestOptions, SpeedLimit};
use crate::sink::Counter;
use crate::sink::partial::PartialFile;

/// The speed below which a part counts as stalled. It is then requested again from its present
/// position.
const STALLED: SpeedLimit = SpeedLimit { bytes_per_second: 1, time: Duration::from_secs(5) };

/// A body that could be fetched in parts.
#[derive(Debug, Clone)]
pub(crate) struct Splittable {
    /// The length of the representation.
    pub(crate) total: u64,
    /// The validator that tells the representation from every other.
    pub(crate) validator: Validator,
}

impl Transfer {
    /// Returns whether the body under way could be fetched in parts, as far as its head shows;
    /// `None` before there is a head.
    pub(crate) fn may_split(&self) -> Option<Option<Splittable>> {
        if !matches!(self.disposition, Disposition::Deliver) {
            return None;
        }
        let head = self.head.as_ref()?;
        let refuses = head.get_all("accept-ranges").any(|value| value.eq_ignore_ascii_case(b"none"));
        let fits = self.may_range
            && matches!(head.status(), 200 | 206)
            && !refuses
            && !self.options.prior_knowledge
            && self.skip == 0
            && self.extent.is_plain()
            && self.body.is_plain();
        Some(
            self.extent
                .total
                .zip(self.extent.validator.clone())
                .filter(|_| fits)
                .map(|(total, validator)| Splittable { total, validator }),
        )
    }

    /// The next byte that it delivers.
    pub(crate) fn position(&self) -> u64 {
        self.extent.at
    }

    /// Makes the transfer the first of several parts, which stops at the cut. Returns the check on
    /// the speed of all.
    pub(crate) fn begin_split(&mut self, cut: &Arc<Cut>, now: Instant) -> Watch {
        self.is_part = true;
        self.cut = Some(Arc::clone(cut));
        cut.moved_to(self.extent.at);
        let mut rest = self.pace.sharing();
        rest.not_below(STALLED, now);
        Watch(std::mem::replace(&mut self.pace, rest))
    }

    /// Continues alone after a split, from the present position or, in a file, from the first
    /// missing byte.
    pub(crate) fn end_split(&mut self) {
        self.is_part = false;
        self.cut = None;
        self.failed_at = self.extent.at;
        self.is_shortcut = self.aim.is_led();
        if let Some(gap) = self.body.next_gap() {
            self.extent.moves_to(gap);
        }
    }

    /// Returns the sink's file, if parts may be written to it in any order.
    pub(crate) fn partial_file(&mut self) -> Option<Arc<PartialFile>> {
        self.body.partial_file()
    }

    /// Returns the counter of bytes that bypass the sink.
    pub(crate) fn counter(&mut self) -> Option<Arc<dyn Counter>> {
        self.body.counter()
    }

    /// Makes a request for a part of this transfer's body; `ordinal` spreads parts over the
    /// addresses of the host. It has the same TLS options as this transfer, so it fits the same
    /// connection.
    pub(crate) fn part(
        &self,
        body: &Splittable,
        span: Range<u64>,
        path: BodyPath,
        ordinal: usize,
        now: Instant,
    ) -> Box<Self> {
        let options = RequestOptions {
            speed_limit: Some(STALLED),
            fail: true,
            include_head: false,
            resume_from: None,
            span: None,
            // It is tried once: a pause that a server asks for (Retry-After) must hold up no stream that is under way.
            retry: RetryRules { max: 0, ..self.options.retry.clone() },
            ..(*self.options).clone()
        };
        let mut part = Self::new(self.aim.target.clone(), Arc::new(options), path, now, ordinal as u64);
        part.own.fields.clone_from(&self.own.fields);
        part.own.max_time = self.own.max_time;
        part.login = self.login.elsewhere();
        part.aim = self.aim.of_part();
        (part.began, part.deadline) = (self.began, self.deadline);
        part.extent = Extent::part(span, body.total, body.validator.clone());
        part.pace = self.pace.sharing();
        part.has_looked = true;
        part.is_part = true;
        part.spread = ordinal;
        part
    }

    /// Returns true if the handshake offers HTTP/2 to the server. Transfers that share an HTTP/2
    /// connection also share its rate.
    pub(crate) fn offers_http2(&self) -> bool {
        self.aim.target.scheme() == Scheme::Https && self.options.tls.alpn.iter().any(|protocol| protocol == b"h2")
    }

    /// Withdraws the offer of HTTP/2, so that the transfer gets a connection that it does not
    /// share.
    #[must_use]
    pub(crate) fn by_itself(mut self: Box<Self>) -> Box<Self> {
        if self.offers_http2() {
            self.offers_no_http2();
        }
        self
    }

    /// Switches to HTTP/1.1 because the server requires it (RFC 9113 section 7, HTTP_1_1_REQUIRED).
    /// Returns false if the request cannot be sent that way.
    pub(crate) fn leaves_http2(&mut self) -> bool {
        let offers_both = self.offers_http2() && self.options.tls.alpn.iter().any(|protocol| protocol == b"http/1.1");
        let is_unanswered = matches!(self.disposition, Disposition::Unknown);
        let leaves = offers_both && is_unanswered && self.cannot_send_again().is_none();
        if leaves {
            self.offers_no_http2();
        }
        leaves
    }

    fn offers_no_http2(&mut self) {
        Arc::make_mut(&mut self.options).tls.alpn.retain(|protocol| protocol != b"h2");
    }

    /// Gives it the mark that its crew knows it by.
    #[must_use]
    pub(crate) fn of_crew(mut self: Box<Self>, id: usize) -> Box<Self> {
        self.crew_id = Some(id);
        self
    }

    /// Returns the number of this part in its crew; `None` for the first stream.
    pub(crate) fn crew_id(&self) -> Option<usize> {
        self.crew_id
    }

    /// Returns true if the transfer fetches one body together with others.
    pub(crate) fn is_part(&self) -> bool {
        self.is_part
    }

    /// Adds the costs of another part of the same body, which delivered `bytes` of it without this
    /// transfer.
    pub(crate) fn adds(&mut self, other: &Facts, bytes: u64) {
        self.facts.body_bytes += bytes;
        self.facts.requests += other.requests;
        self.facts.connects += other.connects;
        self.facts.head_bytes += other.head_bytes;
    }

    /// Bytes that a part brought, next in order.
    ///
    /// # Errors
    /// As [`Transfer::on_body`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.extent.at += bytes.len() as u64;
        self.facts.body_bytes += bytes.len() as u64;
        self.body.push(Lease::borrowed(bytes))
    }

    /// All parts are there.
    ///
    /// # Errors
    /// What the sink says.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.body.finish()
    }
}

/// The check on the speed of all parts together.
pub(crate) struct Watch(Pace);

impl Watch {
    /// Returns the time of the next call to [`Watch::look`], if one is needed.
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.0.look_at()
    }

    /// Returns an error if all parts together are too slow, with `bytes` received so far.
    pub(crate) fn look(&mut self, bytes: u64, now: Instant) -> Option<crate::Error> {
        self.0.look(bytes, now)
    }
}
