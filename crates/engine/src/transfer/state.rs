//! Groups of a transfer's fields. Each group has one reset, which replaces the whole value, so that
//! starting over cannot forget a field.

use std::time::{Duration, Instant};

use haul_policy::queue::HostId;
use haul_policy::redirect::RedirectedRequest;
use haul_proto::head::ResponseHead;

use super::delivery_range::DeliveryRange;
use crate::Error;
use crate::outcome::FollowedRedirect;
use crate::request::{ContentSpan, RequestOptions};

/// The delivered bytes, and the position at which the next response continues. Starting over
/// replaces it by [`ResumeState::fresh`].
pub(super) struct ResumeState {
    /// The bytes to deliver, and the position in them.
    pub(super) range: DeliveryRange,
    /// Bytes of the current response that an earlier response has delivered already.
    pub(super) skip: u64,
    /// The position at the last failure.
    pub(super) failed_at: u64,
    /// The sink has received a head, and holds the content that followed.
    pub(super) has_begun: bool,
}

impl ResumeState {
    /// The state of a transfer that has delivered nothing of `range`.
    pub(super) fn new(range: DeliveryRange) -> Self {
        Self { range, skip: 0, failed_at: 0, has_begun: false }
    }

    /// The state after starting over with content that begins at `start`. A range that was the
    /// engine's idea is not requested again; the rest of known content is.
    pub(super) fn fresh(options: &RequestOptions, start: u64) -> Self {
        Self::new(match options.span {
            Some(ContentSpan::Rest { .. }) => DeliveryRange::from_options(options),
            _ => DeliveryRange::starting_at(start),
        })
    }
}

/// The use of ranges in a transfer, and the existing content that it extends.
pub(super) struct RangeState {
    pub(super) mode: RangeMode,
    /// The first byte to fetch: 0, or the length of an earlier file that is extended. Starting over
    /// begins there, too.
    pub(super) start: u64,
    /// The transfer continues the user's existing content, and cannot replace it.
    pub(super) must_continue: bool,
    /// The sink was asked for its existing content, or need not be.
    pub(super) sink_was_asked: bool,
}

/// The party that sets the Range field of a transfer's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeMode {
    /// No party: the content of the response cannot be requested in parts.
    None,
    /// The caller, who wants a part of the content.
    Caller,
    /// The engine, which delivers all of the content.
    Engine,
    /// The engine, which delivers the content from the caller's offset on.
    EngineFromOffset,
}

impl RangeState {
    /// Returns true if the engine may request ranges: the method is GET, and the caller has no
    /// range of its own.
    pub(super) fn are_allowed(&self) -> bool {
        matches!(self.mode, RangeMode::Engine | RangeMode::EngineFromOffset)
    }

    /// Returns true if the caller wants a part of the content.
    pub(super) fn are_wanted(&self) -> bool {
        matches!(self.mode, RangeMode::Caller | RangeMode::EngineFromOffset)
    }
}

/// Counters and time limits of a transfer's attempts.
pub(crate) struct AttemptState {
    /// The number of attempts before the current one.
    pub(super) number: u32,
    /// The number of times that the transfer started over because existing bytes could not be
    /// completed.
    pub(super) restarts: u32,
    /// The number of times that a server returned the request unprocessed, by a refusal or a broken
    /// connection.
    pub(crate) replays: u32,
    /// The number of waits for a file descriptor.
    pub(crate) descriptor_waits: u32,
    /// A connection has accepted a request of this transfer, whatever came of it.
    pub(super) has_sent: bool,
    /// The start of the first attempt.
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

/// The decisions on the response of the current exchange. Each request replaces them by the
/// default.
#[derive(Default)]
pub(super) struct ResponseDecisions {
    pub(super) disposition: Disposition,
    /// The delay of the attempt that follows once the body is delivered.
    pub(super) retry_after_body: Option<Duration>,
    /// The pause that the response requests on behalf of its host.
    pub(super) host_pause: Option<Duration>,
}

/// The use of the body of the current response.
#[derive(Default)]
pub(super) enum Disposition {
    /// No head has come yet.
    #[default]
    Unknown,
    /// The body goes to the sink.
    Deliver,
    /// The body is dropped, and the transfer continues at another target.
    Follow(Box<RedirectedRequest>),
    /// The body is dropped, and the transfer is tried again after a while.
    Retry(Duration),
    /// The body is dropped, and the transfer sends another request at once.
    Again,
    /// The body is dropped, and the transfer requests the caller's target at once.
    Anew,
    /// The body is dropped: all wanted bytes exist already.
    Complete,
    /// The body is dropped, and the transfer fails.
    Fail(Error),
}

/// Constraints on the connection of the next exchange, and properties of the current one.
#[derive(Default)]
pub(crate) struct ConnectionReuse {
    /// The next exchange needs a connection that has carried nothing yet.
    pub(crate) wants_fresh: bool,
    /// A server has said that it does not answer for this host on a reused connection (421).
    pub(super) is_misdirected: bool,
    /// The current connection has carried other exchanges before, maybe other hosts'.
    is_reused: bool,
    /// The request was sent behind others that were not answered yet.
    is_pipelined: bool,
}

impl ConnectionReuse {
    /// Records the properties of the connection that carries the next request.
    pub(crate) fn on_connection(&mut self, is_reused: bool, is_pipelined: bool) {
        (self.is_reused, self.is_pipelined) = (is_reused, is_pipelined);
    }

    /// Returns true if the current connection has carried other exchanges before.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Returns true if the request was sent behind others that were not answered yet.
    pub(crate) fn is_pipelined(&self) -> bool {
        self.is_pipelined
    }

    /// Returns true if the next exchange needs a connection that no other host shares.
    pub(crate) fn wants_own_host(&self) -> bool {
        self.wants_fresh && self.is_misdirected
    }
}

/// Authentication at a forwarding proxy. Returning to the caller's target resets it.
#[derive(Default)]
pub(super) struct ProxyChallenges {
    /// The current request contains credentials for a proxy.
    pub(super) is_answered: bool,
    /// The number of answered challenges.
    pub(super) rounds: u32,
}

/// Responses before the final one. Returning to the caller's target resets it.
#[derive(Default)]
pub(super) struct RedirectHistory {
    /// Heads to deliver before the body.
    pub(super) heads: Vec<u8>,
    /// The last of these heads that is no final response of the origin: a proxy's, or an interim
    /// one.
    pub(super) last_other_head: Option<Box<ResponseHead>>,
    /// The followed redirects, if they are to be reported.
    pub(super) redirects: Vec<FollowedRedirect>,
}

/// Marks by which the caller's queue recognizes and orders a transfer.
#[derive(Default)]
pub struct Scheduling {
    /// The caller's number of the job.
    pub tag: u64,
    /// The host whose slot in the caller's queue the transfer holds.
    pub host_slot: Option<HostId>,
    /// The rank among transfers that may have to wait for each other: none may wait behind one of a
    /// higher rank. A transfer that all others wait for has rank 0.
    pub rank: u64,
    /// The host's slot was given to another transfer while the response waits for its turn.
    pub(crate) has_given_slot: bool,
}
