//! Groups of a transfer's fields that are reset together. A reset replaces the whole group, so that
//! no field can be forgotten.

use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::redirect::RedirectedRequest;
use haul_proto::response_head::ResponseHead;

use super::delivery_range::DeliveryRange;
use super::host_overload::OverloadRefusal;
use crate::Error;
use crate::request::{RequestOptions, WantedContentRange};
use crate::transfer_outcome::FollowedRedirect;

/// The range of bytes to deliver, and the offset at which a further response continues. When the
/// transfer starts from the beginning, [`ResumeState::without_progress`] replaces this state.
pub(super) struct ResumeState {
    /// The byte range of the content to deliver, and the current offset in that range.
    pub(super) range: DeliveryRange,
    /// The number of bytes of the current response to skip, because an earlier response delivered
    /// them.
    pub(super) skip: u64,
    /// The offset in the content at which the last failure occurred.
    pub(super) failed_at: u64,
    /// True if the sink has accepted the head of a response, and has all content received so far.
    pub(super) has_begun: bool,
}

impl ResumeState {
    /// Makes the state of a transfer that has delivered no byte of `range`.
    pub(super) fn new(range: DeliveryRange) -> Self {
        Self { range, skip: 0, failed_at: 0, has_begun: false }
    }

    /// Makes the state of a transfer that starts from the beginning: at `start`, or with the
    /// caller's range if that is a [`WantedContentRange::Rest`]. The limit of a
    /// [`WantedContentRange::Opening`] is dropped.
    pub(super) fn without_progress(options: &RequestOptions, start: u64) -> Self {
        Self::new(match options.span {
            Some(WantedContentRange::Rest { .. }) => DeliveryRange::from_options(options),
            _ => DeliveryRange::starting_at(start),
        })
    }
}

/// The settings of a transfer's range requests: who sets the Range field, and whether existing
/// content is extended.
pub(super) struct RangeRequestSettings {
    pub(super) mode: RangeFieldOwner,
    /// The offset of the first byte to fetch: 0, or the length of an existing file that the
    /// transfer extends. It does not change when the transfer starts from the beginning.
    pub(super) start: u64,
    /// True if the transfer must extend the user's existing content, and cannot replace it.
    pub(super) must_continue: bool,
    /// True if the sink was asked for content from an earlier run of the program, or need not be
    /// asked.
    pub(super) sink_was_asked: bool,
}

/// The party that may set the Range field of a transfer's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeFieldOwner {
    /// Neither haul nor the user may set the Range field, because the content of the response
    /// cannot be requested in parts.
    None,
    /// The caller sets the Range field, because the caller wants only a part of the content.
    Caller,
    /// The engine sets the Range field. The transfer delivers all of the content.
    Engine,
    /// The engine sets the Range field. The transfer delivers the content from an offset that the
    /// caller has chosen.
    EngineFromOffset,
}

impl RangeRequestSettings {
    /// Returns true if the engine may set the Range field: the method is GET, and the caller does
    /// not set that field.
    pub(super) fn may_request_ranges(&self) -> bool {
        matches!(self.mode, RangeFieldOwner::Engine | RangeFieldOwner::EngineFromOffset)
    }

    /// Returns true if the caller wants only a part of the content and selects it with a Range
    /// field or an offset.
    pub(super) fn should_request_ranges(&self) -> bool {
        matches!(self.mode, RangeFieldOwner::Caller | RangeFieldOwner::EngineFromOffset)
    }
}

/// The counters and time limits of a transfer's attempts.
pub(crate) struct AttemptCountsAndDeadline {
    /// The number of attempts before the current one.
    pub(super) number: u32,
    /// The number of times that the transfer started from the beginning because the existing bytes
    /// could not be completed.
    pub(super) restarts: u32,
    /// The number of times that a request was sent again because the server had not processed it:
    /// the server refused the request, or closed the connection.
    pub(crate) replays: u32,
    /// The number of times that the transfer has waited for a free file descriptor.
    pub(crate) descriptor_waits: u32,
    /// The number of retries that the transfer made because its host was overloaded.
    pub(super) load_retries: u8,
    /// The host's refusal of the current request because of overload; `None` if the request was not
    /// refused.
    pub(super) refusal: Option<OverloadRefusal>,
    /// True if at least one request of this transfer was passed to a connection.
    pub(super) has_sent: bool,
    /// The start time of the first attempt.
    pub(super) first_started: Instant,
    /// The deadline of the current attempt. `None` without a deadline.
    pub(super) deadline: Option<Instant>,
}

impl AttemptCountsAndDeadline {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            number: 0,
            restarts: 0,
            replays: 0,
            descriptor_waits: 0,
            load_retries: 0,
            refusal: None,
            has_sent: false,
            first_started: now,
            deadline: None,
        }
    }
}

/// The decisions about the response of the current exchange. Before each request, they are reset to
/// their default values.
#[derive(Default)]
pub(super) struct ResponseDecisions {
    pub(super) disposition: BodyDisposition,
    /// The delay before another attempt, if another attempt must follow although the body of this
    /// response is delivered; otherwise `None`.
    pub(super) retry_after_body: Option<Duration>,
    /// The pause that the response requests before the next request to its host (Retry-After);
    /// `None` if it requests no pause.
    pub(super) host_pause: Option<Duration>,
}

/// The decision about the body of the current response.
#[derive(Default)]
pub(super) enum BodyDisposition {
    /// No decision about the body has been made, because no head has arrived yet.
    #[default]
    Unknown,
    /// The body is delivered to the sink.
    Deliver,
    /// The body is dropped, and the transfer continues at another target.
    Follow(Box<RedirectedRequest>),
    /// The body is dropped, and the transfer sends the request again after this delay.
    Retry(Duration),
    /// The body is dropped, and the transfer sends another request to the same target without a
    /// pause.
    Again,
    /// The body is dropped, and the transfer sends another request without a pause to the caller's
    /// target, not to the target of a redirect.
    Anew,
    /// The body is dropped, because the sink has all wanted bytes already.
    Complete,
    /// The body is dropped, and the transfer fails.
    Fail(Error),
}

/// The facts about the connection of a transfer's current exchange (whether it is reused, whether
/// the request is pipelined), and the demands on the next one (for example, that it is new).
#[derive(Default)]
pub(crate) struct ExchangeConnectionState {
    /// True if the next exchange needs a new connection, not one from the pool.
    pub(crate) wants_fresh: bool,
    /// True if a server has refused this host on a reused connection (status 421).
    pub(super) is_misdirected: bool,
    /// True if earlier exchanges used the current connection, perhaps for other hosts.
    is_reused: bool,
    /// True if the request was pipelined: it was sent while earlier requests on the connection had
    /// no response.
    is_pipelined: bool,
}

impl ExchangeConnectionState {
    /// Records whether the connection of the next request is reused, and whether the request is
    /// pipelined.
    pub(crate) fn on_connection(&mut self, is_reused: bool, is_pipelined: bool) {
        (self.is_reused, self.is_pipelined) = (is_reused, is_pipelined);
    }

    /// Returns true if the current connection was used by earlier exchanges.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Returns true if the request was pipelined: it was sent while earlier requests on the
    /// connection had no response.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.is_pipelined
    }

    /// Returns true if the next exchange needs a connection that is not shared with other hosts.
    pub(crate) fn wants_own_host(&self) -> bool {
        self.wants_fresh && self.is_misdirected
    }
}

/// The state of authentication to a proxy that forwards the request. It is reset when the transfer
/// starts again at the caller's target.
#[derive(Default)]
pub(super) struct ForwardProxyAuthState {
    /// True if the current request contains credentials for a proxy.
    pub(super) is_answered: bool,
    /// The number of challenges from a forwarding proxy that the transfer has answered.
    pub(super) rounds: u32,
}

/// The redirects and response heads that came before the final response. They are reset when the
/// transfer starts again at the caller's target.
#[derive(Default)]
pub(super) struct EarlierResponses {
    /// The response heads to deliver before the body, in the order of their arrival. Empty if no
    /// head is delivered.
    pub(super) heads: Vec<u8>,
    /// The last stored head that is not a final response of the origin: a proxy's response, or an
    /// interim response (1xx). `None` if there was none.
    pub(super) last_other_head: Option<Box<ResponseHead>>,
    /// The redirects that were followed, if
    /// [`RequestOptions::keep_history`](crate::RequestOptions::keep_history) is set.
    pub(super) redirects: Vec<FollowedRedirect>,
}

/// The data with which the caller's queue identifies a transfer and orders it among others.
#[derive(Default)]
pub struct SchedulingKey {
    /// The caller's ID for the transfer.
    pub tag: u64,
    /// The host slot that this transfer occupies until it ends. A host slot is the permit for one
    /// transfer to a host. `None` if the number of such transfers is not limited.
    pub host_slot: Option<HostId>,
    /// The position of the transfer in the output order. On a connection, a transfer must not wait
    /// for a transfer of a higher rank. A transfer for which all other transfers wait has rank 0.
    pub rank: u64,
    /// True if another transfer may run in this transfer's place under the limit on concurrent
    /// transfers, because this transfer waits for the first answer of its host.
    pub(crate) is_slot_lent: bool,
    /// True if the transfer is not counted in the limit of its host at present, because it waits
    /// for the responses to earlier pipelined requests.
    pub(crate) has_given_slot: bool,
}
