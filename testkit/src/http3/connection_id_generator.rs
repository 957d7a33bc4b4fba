//! Generates connection IDs that allow two servers to use a port one after the other.

use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator};

const LENGTH: usize = 8;

/// A generator of random connection IDs that accepts every ID as its own. quinn's default generator
/// marks its IDs. Because of the mark, a restarted server on the same port would silently drop
/// packets with IDs of the earlier server, instead of sending a stateless reset.
pub(super) struct UnmarkedConnectionIdGenerator;

impl ConnectionIdGenerator for UnmarkedConnectionIdGenerator {
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
