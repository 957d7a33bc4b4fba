//! Limit on outstanding requests, for a peer that has left some unanswered on an earlier
//! connection.
//!
//! No message announces that a server ends each connection after a few requests, or takes few at
//! once: all waiting requests are sent, and most of them in vain. The next connection gets only as
//! many as the last one answered, and then half as many at once as it has answered itself. The
//! limit grows in each round as long as the server keeps up (like TCP's slow start), and never more
//! than half of the answered number is sent in vain. Without such an experience, there is no limit.
//!
//! ```
//! use haul::drive::link::Allowance;
//! let mut first = Allowance::default();
//! assert!(first.allows(0, || 99));
//! first.left_some(3);
//! let mut next = Allowance::default();
//! next.expect(first.bore(3, 0).expect("it answered three, and left others"));
//! assert!(next.allows(0, || 2) && !next.allows(0, || 3));
//! ```
//!
//! Rejected: to wait until all that were sent are answered (one slow response would hold up all others); as many at once as it
//! has answered (a server that ends connections after twenty was asked 3,134 times for 2,000 pages; 2,807 times so).

/// The known request limit of a connection.
#[derive(Debug, Default)]
pub struct Allowance {
    /// The number of requests that the last connection answered, if it left others unanswered.
    expected: Option<usize>,
    /// The number of answered requests when the connection was last idle.
    answered_at_rest: usize,
    /// The peer left requests unanswered.
    has_left_some: bool,
}

impl Allowance {
    /// Notes that the last connection to this peer answered `bore` requests.
    pub fn expect(&mut self, bore: usize) {
        self.expected = Some(bore.max(1));
    }

    /// Returns true if another request may be sent, after `answered` responses and with
    /// `unanswered` requests outstanding.
    #[must_use]
    pub fn allows(&self, answered: usize, unanswered: impl FnOnce() -> usize) -> bool {
        self.expected.is_none_or(|expected| unanswered() < expected.saturating_sub(answered).max(answered.div_ceil(2)))
    }

    /// Notes that a request is sent on the idle connection, which has answered `answered` so far.
    pub fn begins_anew(&mut self, answered: usize) {
        self.answered_at_rest = answered;
    }

    /// Notes that the peer refused a request, and continues with others.
    pub fn refused(&mut self) {
        self.has_left_some = true;
    }

    /// Notes that the peer ended the connection and left requests unanswered; `answered` counts all
    /// that it has answered or is about to. If it has answered none since the connection was idle,
    /// the connection was closed for idleness, or is broken: that shows no limit.
    pub fn left_some(&mut self, answered: usize) {
        self.has_left_some |= answered > self.answered_at_rest;
    }

    /// Returns the number of requests that the next connection is expected to answer, if this one
    /// has answered `answered` and will yet answer `unanswered`.
    #[must_use]
    pub fn bore(&self, answered: usize, unanswered: usize) -> Option<usize> {
        let bore = answered + unanswered;
        if self.has_left_some && bore > 0 { Some(bore) } else { self.expected.map(|expected| expected.max(bore)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting(bore: usize) -> Allowance {
        let mut allowance = Allowance::default();
        allowance.expect(bore);
        allowance
    }

    /// Returns the number of requests that may be unanswered at once.
    fn room(allowance: &Allowance, answered: usize) -> usize {
        (0..1000).take_while(|&unanswered| allowance.allows(answered, || unanswered)).count()
    }

    #[test]
    fn what_is_sent_grows_with_what_is_answered() {
        let allowance = expecting(4);
        let rooms: Vec<usize> = (0..9).map(|answered| room(&allowance, answered)).collect();
        assert_eq!(rooms, [4, 3, 2, 2, 2, 3, 3, 4, 4]);
        assert_eq!(room(&Allowance::default(), 0), 1000);
    }

    #[test]
    fn there_is_always_room_for_one() {
        for bore in 0..5 {
            assert!((0..9).all(|answered| expecting(bore).allows(answered, || 0)), "{bore}");
        }
    }

    #[test]
    fn a_connection_that_was_closed_while_idle_says_nothing() {
        let mut allowance = Allowance::default();
        allowance.begins_anew(1);
        allowance.left_some(1);
        assert_eq!(allowance.bore(1, 0), None);
        allowance.left_some(2);
        assert_eq!(allowance.bore(2, 0), Some(2));
    }

    #[test]
    fn what_is_expected_grows_with_what_a_connection_bears() {
        let mut allowance = expecting(3);
        assert_eq!(allowance.bore(2, 0), Some(3));
        assert_eq!(allowance.bore(5, 1), Some(6));
        allowance.refused();
        assert_eq!(allowance.bore(2, 0), Some(2));
    }
}
