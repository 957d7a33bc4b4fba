//! Groups of a transfer's fields that are reset together: a reset replaces the whole group, so that
//! it cannot forget a field.

use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::redirect::RedirectedRequest;
use haul_proto::head::ResponseHead;

use super::delivery_range::DeliveryRange;
use crate::Error;
use crate::outcome::FollowedRedirect;
use crate::request::{ContentSpan, RequestOptions};

/// The bytes to deliver, and the position from which a response continues. Starting over replaces
/// it by [`ResumeState::fresh`].
pub(super) struct ResumeState {
    /// The byte range to deliver, and the position in it.
    pub(super) range: DeliveryRange,
    /// The number of bytes of the current response to skip, because an earlier response delivered
    /// them.
    pub(super) skip: u64,
    /// The position at which the last failure occurred.
    pub(super) failed_at: u64,
    /// The sink has accepted a response, and has the content received so far.
    pub(super) has_begun: bool,
}

impl ResumeState {
    /// Makes the state of a transfer that has delivered no byte of `range`.
    pub(super) fn new(range: DeliveryRange) -> Self {
        Self { range, skip: 0, failed_at: 0, has_begun: false }
    }

    /// Makes the state after starting over: that of the range from `start` on, or of the caller's
    /// [`ContentSpan::Rest`]. A [`ContentSpan::Opening`] is not requested again.
    pub(super) fn fresh(options: &RequestOptions, start: u64) -> Self {
        Self::new(match options.span {
            Some(ContentSpan::Rest { .. }) => DeliveryRange::from_options(options),
            _ => DeliveryRange::starting_at(start),
        })
    }
}

/// The permission of a transfer to use ranges, and the existing content that it extends.
pub(super) struct RangeState {
    pub(super) mode: RangeMode,
    /// The offset of the first byte to fetch: 0, or the length of an earlier file that is extended.
    /// It remains the same after starting over.
    pub(super) start: u64,
    /// The transfer must extend the user's existing content, and cannot replace it.
    pub(super) must_continue: bool,
    /// The sink was asked for existing content, or need not be asked.
    pub(super) sink_was_asked: bool,
}

/// The party that may set the Range field of a transfer's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeMode {
    /// Neither: the content of the response cannot be requested in parts.
    None,
    /// The caller, who wants only a part of the content.
    Caller,
    /// The engine; the transfer delivers all of the content.
    Engine,
    /// The engine; the transfer delivers the content from the caller's offset on.
    EngineFromOffset,
}

impl RangeState {
    /// Returns true if the engine may set Range: the method is GET, and the caller sets no Range.
    pub(super) fn are_allowed(&self) -> bool {
        matches!(self.mode, RangeMode::Engine | RangeMode::EngineFromOffset)
    }

    /// Returns true if the caller wants only a part of the content.
    pub(super) fn are_wanted(&self) -> bool {
        matches!(self.mode, RangeMode::Caller | RangeMode::EngineFromOffset)
    }
}

/// Counters and time limits of a transfer's attempts.
pub(crate) struct AttemptState {
    /// The number of attempts before the current one.
    pub(super) number: u32,
    /// The number of times that the transfer started over because the existing bytes could not be
    /// completed.
    pub(super) restarts: u32,
    /// The number of times that the request was sent again because a server returned it
    /// unprocessed, by a refusal or by closing the connection.
    pub(crate) replays: u32,
    /// The number of times that the transfer waited for a free file descriptor.
    pub(crate) descriptor_waits: u32,
    /// At least one request of this transfer was passed to a connection.
    pub(super) has_sent: bool,
    /// The start time of the first attempt.
    pub(super) first_started: Instant,
    /// The deadline of the current attempt.
    pub(super) deadline: Option<Instant>,
}

impl AttemptState {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            number: 0,
            restarts: 0,
            replays: 0,
            descriptor_waits: 0,
            has_sent: false,
            first_started: now,
            deadline: None,
        }
    }
}

/// The decisions about the response of the current exchange. Each request resets them to the
/// default.
#[derive(Default)]
pub(super) struct ResponseDecisions {
    pub(super) disposition: BodyDisposition,
    /// The delay before another attempt that must follow after the body is delivered.
    pub(super) retry_after_body: Option<Duration>,
    /// The pause that the response requests for its host.
    pub(super) host_pause: Option<Duration>,
}

/// The use of the body of the current response.
#[derive(Default)]
pub(super) enum BodyDisposition {
    /// Not decided, because no head has arrived yet.
    #[default]
    Unknown,
    /// The body goes to the sink.
    Deliver,
    /// The body is dropped, and the transfer continues at another target.
    Follow(Box<RedirectedRequest>),
    /// The body is dropped, and the transfer is tried again after this delay.
    Retry(Duration),
    /// The body is dropped, and the transfer sends another request at once.
    Again,
    /// The body is dropped, and the transfer returns to the caller's target at once.
    Anew,
    /// The body is dropped: all wanted bytes exist already.
    Complete,
    /// The body is dropped, and the transfer fails.
    Fail(Error),
}

/// Requirements for the connection of the next exchange, and properties of the current one.
#[derive(Default)]
pub(crate) struct ConnectionReuse {
    /// The next exchange needs a new connection.
    pub(crate) wants_fresh: bool,
    /// A server has refused this host on a reused connection (421).
    pub(super) is_misdirected: bool,
    /// The current connection was used by earlier exchanges, perhaps for other hosts.
    is_reused: bool,
    /// The request was pipelined: earlier requests on the connection had no response yet.
    is_pipelined: bool,
}

impl ConnectionReuse {
    /// Records whether the connection of the next request is reused, and whether the request is
    /// pipelined.
    pub(crate) fn on_connection(&mut self, is_reused: bool, is_pipelined: bool) {
        (self.is_reused, self.is_pipelined) = (is_reused, is_pipelined);
    }

    /// Returns true if the current connection was used by earlier exchanges.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Returns true if the request was pipelined behind others.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.is_pipelined
    }

    /// Returns true if the next exchange needs a connection that is not shared with other hosts.
    pub(crate) fn wants_own_host(&self) -> bool {
        self.wants_fresh && self.is_misdirected
    }
}

/// Authentication at a proxy that forwards the request. Reset on return to the caller's target.
#[derive(Default)]
pub(super) struct ProxyChallenges {
    /// The current request contains credentials for a proxy.
    pub(super) is_answered: bool,
    /// The number of challenges that were answered.
    pub(super) rounds: u32,
}

/// Responses before the final one. Reset on return to the caller's target.
#[derive(Default)]
pub(super) struct RedirectHistory {
    /// The heads to deliver before the body, in the order of their arrival.
    pub(super) heads: Vec<u8>,
    /// The last of these heads that is not a final response of the origin: a proxy's, or an interim
    /// response (1xx).
    pub(super) last_other_head: Option<Box<ResponseHead>>,
    /// The followed redirects, if they are to be reported.
    pub(super) redirects: Vec<FollowedRedirect>,
}

/// Data by which the caller's queue recognizes and orders a transfer.
#[derive(Default)]
pub struct Scheduling {
    /// The number that the caller gave the transfer.
    pub tag: u64,
    /// The host that the transfer counts for in the queue's limit per host, until it ends.
    pub host_slot: Option<HostId>,
    /// The rank among transfers on the same connection: a transfer must not wait behind one of a
    /// higher rank. A transfer that all others wait for has rank 0.
    pub rank: u64,
    /// The transfer no longer counts in the limit per host, because it waits behind earlier
    /// pipelined requests.
    pub(crate) has_given_slot: bool,
}
