//! The limit on outstanding requests for a peer that left requests unanswered on an earlier
//! connection.
//!
//! A server may close each connection after a few requests, or accept only a few outstanding
//! requests, without announcing it. Requests that were already sent then stay unanswered.
//! Therefore, the next connection has a limit. At first, it sends in total only as many requests as
//! the last connection answered. Later, half as many requests may be outstanding as this connection
//! has answered. For example, if the last connection answered 4 requests, at most 4 may be
//! outstanding at first, 2 after the fourth response, and 4 after the eighth. The limit thus grows
//! as long as the server keeps up (like TCP's slow start). If the server closes the connection in
//! this later phase, about half as many requests as were answered are sent in vain. A peer that has
//! always answered everything has no limit.
//!
//! ```
//! use haul::drive::connection::PipelineLimit;
//! let mut first = PipelineLimit::default();
//! assert!(first.allows(0, || 99));
//! first.on_unanswered(3);
//! let mut next = PipelineLimit::default();
//! next.set(first.for_next_connection(3, 0).expect("it answered three, and left others"));
//! assert!(next.allows(0, || 2) && !next.allows(0, || 3));
//! ```
//!
//! Rejected: to wait until all sent requests are answered (one slow response would delay all
//! others); to allow as many outstanding requests as have been answered (a server that ends each
//! connection after twenty requests received 3,134 requests for 2,000 pages; with half as many
//! outstanding requests, 2,807).

/// The limit on unanswered requests of one connection. It is learned from earlier connections to
/// the same peer that closed before they had answered all requests.
#[derive(Debug, Default)]
pub struct PipelineLimit {
    /// The number of requests that the previous connection to this peer answered before it closed
    /// and left other requests unanswered. `None` if no connection did that.
    limit: Option<usize>,
    /// The number of requests that had been answered when the connection was last idle.
    answered_when_idle: usize,
    /// True if the peer left requests on this connection unanswered.
    has_unanswered: bool,
}

impl PipelineLimit {
    /// Limits the outstanding requests on this connection. `answered` is the number of requests
    /// that the previous connection to this peer answered before it closed. After n responses on
    /// this connection, the limit is the larger of `answered` - n and n / 2 (rounded up). With 4,
    /// for example, it is 4 at first, 2 after two to four responses, and 4 after eight.
    pub fn set(&mut self, answered: usize) {
        self.limit = Some(answered.max(1));
    }

    /// Returns true if another request may be sent on the connection. `answered` is the number of
    /// responses so far. `outstanding` returns the number of outstanding requests.
    #[must_use]
    pub fn allows(&self, answered: usize, outstanding: impl FnOnce() -> usize) -> bool {
        self.limit.is_none_or(|limit| outstanding() < limit.saturating_sub(answered).max(answered.div_ceil(2)))
    }

    /// Records that a request is sent while no other request is outstanding. `answered` is the
    /// number of responses that the connection has delivered.
    pub fn start_from_idle(&mut self, answered: usize) {
        self.answered_when_idle = answered;
    }

    /// Records that the peer refused a request and left it unanswered, but still accepts other
    /// requests.
    pub fn on_refusal(&mut self) {
        self.has_unanswered = true;
    }

    /// Records that the peer closed the connection and left requests unanswered. `answered` is the
    /// number of requests that the peer has answered or will still answer. Sets no limit if the
    /// peer has answered no request since the connection was last idle: the peer then closed an
    /// idle connection, or the connection is broken.
    pub fn on_unanswered(&mut self, answered: usize) {
        self.has_unanswered |= answered > self.answered_when_idle;
    }

    /// Returns the argument of [`PipelineLimit::set`] for the next connection to this peer. Call
    /// this when this connection takes no more requests. `answered` is the number of requests that
    /// the peer has answered on this connection. `outstanding` is the number of further requests
    /// that the peer is expected to answer. Returns `None` if no connection to the peer has shown a
    /// limit.
    #[must_use]
    pub fn for_next_connection(&self, answered: usize, outstanding: usize) -> Option<usize> {
        let total = answered + outstanding;
        if self.has_unanswered && total > 0 { Some(total) } else { self.limit.map(|limit| limit.max(total)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_to(answered: usize) -> PipelineLimit {
        let mut limit = PipelineLimit::default();
        limit.set(answered);
        limit
    }

    /// Returns the number of requests that may be outstanding after `answered` responses.
    fn room(limit: &PipelineLimit, answered: usize) -> usize {
        (0..1000).take_while(|&outstanding| limit.allows(answered, || outstanding)).count()
    }

    #[test]
    fn pipeline_limit_grows_with_answered_requests() {
        let limit = limited_to(4);
        let rooms: Vec<usize> = (0..9).map(|answered| room(&limit, answered)).collect();
        assert_eq!(rooms, [4, 3, 2, 2, 2, 3, 3, 4, 4]);
        assert_eq!(room(&PipelineLimit::default(), 0), 1000);
    }

    #[test]
    fn pipeline_limit_always_allows_one_request() {
        for before in 0..5 {
            assert!((0..9).all(|answered| limited_to(before).allows(answered, || 0)), "{before}");
        }
    }

    #[test]
    fn connection_closed_while_idle_sets_no_pipeline_limit() {
        let mut limit = PipelineLimit::default();
        limit.start_from_idle(1);
        limit.on_unanswered(1);
        assert_eq!(limit.for_next_connection(1, 0), None);
        limit.on_unanswered(2);
        assert_eq!(limit.for_next_connection(2, 0), Some(2));
    }

    #[test]
    fn next_pipeline_limit_counts_answered_requests() {
        let mut limit = limited_to(3);
        assert_eq!(limit.for_next_connection(2, 0), Some(3));
        assert_eq!(limit.for_next_connection(5, 1), Some(6));
        limit.on_refusal();
        assert_eq!(limit.for_next_connection(2, 0), Some(2));
    }
}
