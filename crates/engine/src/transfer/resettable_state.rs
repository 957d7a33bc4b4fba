//! Groups of a transfer's fields that are reset together. A reset replaces the whole group, so that
//! no field can be forgotten.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::redirect::RedirectedRequest;
use haul_proto::response_head::ResponseHead;

use super::delivery_range::DeliveryRange;
use super::host_overload::OverloadRefusal;
use crate::Error;
use crate::request::{RequestOptions, WantedContentRange};
use crate::transfer_outcome::FollowedRedirect;

/// The range of bytes that a transfer delivers, and its progress in that range.
/// [`DeliveryProgress::without_progress`] makes a new state when the transfer starts from the
/// beginning.
pub(super) struct DeliveryProgress {
    /// The byte range of the content to deliver, and the current offset in that range.
    pub(super) range: DeliveryRange,
    /// The offset in the content at which the last failure occurred, to measure the progress since
    /// then.
    pub(super) failed_at: u64,
    /// True if the delivery to the sink has begun: the sink has accepted the head of a response.
    /// False again if the sink has discarded what it received, so that the transfer starts over.
    pub(super) has_begun: bool,
    /// True if the current response has a content coding or transfer coding that the decoder or the
    /// sink removes.
    pub(super) is_coded: bool,
}

impl DeliveryProgress {
    /// Makes the state of a transfer that has delivered no byte of `range`.
    pub(super) fn new(range: DeliveryRange) -> Self {
        Self { range, failed_at: 0, has_begun: false, is_coded: false }
    }

    /// Makes the state of a transfer that starts again and has delivered nothing. If the options
    /// select the rest of the content after existing bytes ([`WantedContentRange::Rest`]), the
    /// transfer delivers that rest. Otherwise, the transfer delivers the content from the offset
    /// `start` to the end. [`WantedContentRange::Opening`], which selects only the first bytes, is
    /// ignored.
    pub(super) fn without_progress(options: &RequestOptions, start: u64) -> Self {
        Self::new(match options.span {
            Some(WantedContentRange::Rest { .. }) => DeliveryRange::from_options(options),
            _ => DeliveryRange::starting_at(start),
        })
    }
}

/// The settings of a transfer's range requests: the party that may set the Range field, the offset
/// of the first byte, and whether the transfer must continue content that the user already has.
pub(super) struct RangeRequestSettings {
    pub(super) mode: RangeFieldOwner,
    /// The offset of the first byte to fetch: 0, or the length of an existing file that the
    /// transfer extends. Retries do not change it.
    pub(super) start: u64,
    /// True if the transfer must extend the user's existing content, and cannot replace it.
    pub(super) must_continue: bool,
    /// True if the transfer no longer has to ask the sink for content from an earlier run of the
    /// program: it has already asked, or the caller has chosen an offset or a range.
    pub(super) sink_was_asked: bool,
}

/// The party that may set the Range field of a transfer's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeFieldOwner {
    /// No request may have a Range field, because the content of the response cannot be requested
    /// in parts.
    None,
    /// The caller sets the Range field, because the caller wants only a part of the content.
    Caller,
    /// The engine decides which requests have a Range field. The transfer delivers all of the
    /// content.
    Engine,
    /// The engine decides which requests have a Range field. The transfer delivers the content from
    /// the caller's offset ([`RequestOptions::resume_from`]) to the end.
    EngineFromOffset,
}

impl RangeRequestSettings {
    /// Returns true if the engine may set the Range field: the method is GET, and the caller does
    /// not set that field.
    pub(super) fn may_request_ranges(&self) -> bool {
        matches!(self.mode, RangeFieldOwner::Engine | RangeFieldOwner::EngineFromOffset)
    }

    /// Returns true if the caller wants only a part of the content, which a Range field or an
    /// offset selects.
    pub(super) fn should_request_ranges(&self) -> bool {
        matches!(self.mode, RangeFieldOwner::Caller | RangeFieldOwner::EngineFromOffset)
    }
}

/// The counters of a transfer's attempts, and the times that limit them. An attempt is a request
/// with its redirects; a retry is a further attempt.
pub(crate) struct AttemptCountsAndDeadline {
    /// The number of earlier attempts that count in the retry rules.
    pub(super) counted_attempts: u32,
    /// The number of times that the transfer started again from the beginning, because it could not
    /// continue after the bytes that it already had.
    pub(super) restarts: u16,
    /// The number of times that a request was sent again because the server had not processed it.
    /// The server refused the request, or closed the connection.
    pub(crate) replays: u8,
    /// The number of times that the transfer has waited for a free file descriptor, at most 255.
    pub(crate) descriptor_waits: u8,
    /// The number of retries of this transfer because its host was overloaded.
    pub(super) load_retries: u8,
    /// The host's refusal of the current request because of overload; `None` if the request was not
    /// refused.
    pub(super) refusal: Option<OverloadRefusal>,
    /// The length in milliseconds of the latest pause before a repetition that does not count as a
    /// retry; the current attempt continues then. `None` if it had no such pause.
    pub(super) repetition_pause: Option<NonZeroU32>,
    /// True if at least one request of this transfer was passed to a connection.
    pub(super) has_sent: bool,
    /// The time at which the first attempt of the transfer began.
    pub(super) first_started: Instant,
    /// The time by which the current attempt must have ended; `None` without a time limit.
    pub(super) deadline: Option<Instant>,
}

impl AttemptCountsAndDeadline {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            counted_attempts: 0,
            restarts: 0,
            replays: 0,
            descriptor_waits: 0,
            load_retries: 0,
            refusal: None,
            repetition_pause: None,
            has_sent: false,
            first_started: now,
            deadline: None,
        }
    }
}

/// The decisions about the response of the current exchange. They are reset before each request.
#[derive(Default)]
pub(super) struct ResponseDecisions {
    pub(super) disposition: BodyDisposition,
    /// The number of bytes of the response's body still to skip, because an earlier response
    /// delivered them.
    pub(super) skip: u64,
    /// True if the response is longer than the requested range, because it contains the whole
    /// content. The bytes after the range are dropped.
    pub(super) exceeds_range: bool,
    /// The delay before the retry that follows the delivery of this response's body; `None` if no
    /// retry follows.
    pub(super) retry_after_body: Option<Duration>,
    /// The pause that the response requests by Retry-After, before the next request to this host,
    /// in milliseconds; `None` if it requests no pause. A number takes less memory than a duration.
    pub(super) host_pause: Option<NonZeroU64>,
}

/// The decision about the body of the current response.
#[derive(Default)]
pub(super) enum BodyDisposition {
    /// No decision about the body has been made, because no head has arrived yet.
    #[default]
    Unknown,
    /// The body is delivered to the sink.
    Deliver,
    /// The body is dropped, and the transfer continues with this request to another target.
    Follow(Box<RedirectedRequest>),
    /// The body is dropped, and the transfer sends the request again after this delay.
    Retry(Duration),
    /// The body is dropped, and the transfer immediately sends another request to the same target,
    /// for example with credentials.
    Again,
    /// The body is dropped, and the transfer immediately requests the caller's URL again, because
    /// the URL to which a redirect led may have expired.
    RestartAtCallerUrl,
    /// The body is dropped, because the sink has all wanted bytes already.
    Complete,
    /// The body is dropped, and the transfer fails with this error.
    Fail(Error),
}

/// The state of the connection that a transfer's exchanges use: properties of the current
/// connection, and requirements for the next one.
#[derive(Default)]
pub(crate) struct ExchangeConnectionState {
    /// True if the next exchange needs a new connection, not one from the pool.
    pub(crate) needs_new_connection: bool,
    /// True if a request on a reused connection was answered with 421 (Misdirected Request): on
    /// that connection, the server does not serve this host.
    pub(super) is_misdirected: bool,
    /// True if earlier exchanges, perhaps with other hosts, used the current connection.
    is_reused: bool,
    /// True if the request was pipelined: it was sent while earlier requests on the connection had
    /// no response.
    is_pipelined: bool,
}

impl ExchangeConnectionState {
    /// Makes the state before the first exchange.
    pub(super) fn new(needs_new_connection: bool) -> Self {
        Self { needs_new_connection, ..Self::default() }
    }

    /// Records two properties of the next request: whether its connection is reused, and whether it
    /// is pipelined.
    pub(crate) fn on_connection(&mut self, is_reused: bool, is_pipelined: bool) {
        (self.is_reused, self.is_pipelined) = (is_reused, is_pipelined);
    }

    /// Forgets the answers 421 (Misdirected Request), because the next request has another target.
    pub(super) fn on_new_target(&mut self) {
        self.is_misdirected = false;
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

    /// Returns true if the next exchange needs a connection that no other host uses.
    pub(crate) fn wants_own_host(&self) -> bool {
        self.needs_new_connection && self.is_misdirected
    }
}

/// The state of authentication to a proxy that forwards the request. It is reset when the transfer
/// goes back to the caller's URL, for example after the target of a redirect has failed.
#[derive(Default)]
pub(super) struct ForwardProxyAuthState {
    /// True if the current request contains credentials for the forwarding proxy.
    pub(super) is_answered: bool,
    /// The number of challenges of the forwarding proxy to which the transfer has sent credentials.
    pub(super) rounds: u8,
}

/// The redirects and response heads before the final response. They are dropped when the transfer
/// goes back to the caller's URL, for example after the target of a redirect has failed.
#[derive(Default)]
pub(super) struct EarlierResponses {
    /// The response heads to deliver before the body, in the order of their arrival. Empty if no
    /// head is delivered.
    pub(super) heads: Vec<u8>,
    /// The last stored head that is not a final response of the origin: the head of a proxy's
    /// response, or of an interim response (1xx). `None` if there was none.
    pub(super) last_other_head: Option<Box<ResponseHead>>,
    /// The redirects that were followed, if
    /// [`RequestOptions::keep_history`](crate::RequestOptions::keep_history) is set.
    pub(super) redirects: Vec<FollowedRedirect>,
}

/// The data by which the caller identifies a transfer, and by which the driver orders it among
/// other transfers.
#[derive(Default)]
pub struct TransferSchedulingData {
    /// The caller's ID for the transfer.
    pub tag: u64,
    /// The host slot (the permit for one transfer to the host) that this transfer holds until it
    /// ends. `None` if the number of transfers to the host is not limited.
    pub host_slot: Option<HostId>,
    /// The transfer's position in the order of the output: rank 1 comes before rank 2. A transfer
    /// has rank 0 if all other output waits for its body. A transfer of rank 1 must not wait on a
    /// connection for one of rank 2, whose output may wait for that of rank 1.
    pub rank: u64,
    /// True while this transfer waits for the first answer of its host and, because of that wait,
    /// one transfer more may run than the limit on concurrent transfers allows.
    pub(crate) has_extra_slot: bool,
    /// True if the transfer has given away its host slot: its response is complete, but is kept
    /// until the end of the pipeline. The transfer then does not count in the limit on transfers to
    /// its host.
    pub(crate) has_given_slot: bool,
}
