//! Connection IDs that two servers in turn can share a port with.

use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator};

const LENGTH: usize = 8;

/// Generates random connection IDs, and accepts every ID as its own. quinn's default generator
/// marks its IDs, so that a restarted server on the same port drops packets with them unanswered
/// instead of sending a stateless reset.
pub(super) struct UnmarkedConnectionIds;

impl ConnectionIdGenerator for UnmarkedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; LENGTH];
        aws_lc_rs::rand::fill(&mut id).expect("the system has entropy");
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
