//! Replies that no honest server sends. A grammar generates HTTP/1 and HTTP/2 sessions from a seed,
//! and half of them are damaged afterwards. A server sends such a reply on each connection.
//!
//! ```text
//! seed ──▶ h1_reply_generator, h2_reply_generator ──▶ ReplyDraft ──▶ damage ──▶ cuts ──▶ HostileReply ──▶ HostileServer
//! ```
//!
//! A reply that was not damaged has an [`AllowedResult`]: the grammar has marked each of its parts
//! as harmless, as a violation, or as uncertain. A test can therefore check more than the absence
//! of panics and hangs.
//!
//! ```
//! use testkit::hostile::{AllowedResult, HostileProtocol, HostileReply};
//!
//! let replies: Vec<HostileReply> = (0..200).map(|seed| HostileReply::from_seed(seed)).collect();
//! assert_eq!(replies, (0..200).map(|seed| HostileReply::from_seed(seed)).collect::<Vec<_>>());
//! let is_bad = |reply: &HostileReply| reply.promise == AllowedResult::Failure;
//! assert!(replies.iter().any(|reply| reply.protocol == HostileProtocol::Http2 && is_bad(reply)));
//! assert!(replies.iter().any(|reply| matches!(&reply.promise, AllowedResult::Body(_))));
//! ```

mod confusing_non_framing_fields;
mod damage;
mod h1_reply_generator;
mod h2_reply_generator;
mod reply_draft;
mod server;

pub use server::HostileServer;

use crate::rng::{Rng, mix};

/// The protocol of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostileProtocol {
    /// HTTP/1.1 or HTTP/1.0.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// A step of a hostile reply that the server performs on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyPiece {
    /// Sends these bytes in one write.
    Send(Vec<u8>),
    /// Sends these bytes this many times, or until a write fails.
    Repeat(Vec<u8>, u32),
    /// Waits until the client has sent this many request heads in total. If the number is above
    /// one, the wait ends when no further head arrives for 50 ms.
    Await(u32),
}

/// The end of the connection after the last step of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    /// The connection is closed properly.
    Close,
    /// The connection is reset.
    Reset,
    /// The connection stays open until the client closes it.
    Stall,
}

/// The result that a client may report for a hostile reply if it sends one unconditional GET
/// without a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedResult {
    /// The client accepts the reply, with this body.
    Body(Vec<u8>),
    /// The client fails, because the reply violates a rule that a client must enforce.
    Failure,
    /// No result is required: the reply was damaged, or a client may either succeed or fail.
    Nothing,
}

/// A hostile reply: everything that the server sends on one connection, generated from a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostileReply {
    /// The protocol that the server speaks.
    pub protocol: HostileProtocol,
    /// The steps that the server performs on a connection, in order.
    pub pieces: Vec<ReplyPiece>,
    /// The end of the connection after the last step.
    pub end: ReplyEnd,
    /// The result that a client may report for this reply, which the test checks.
    pub promise: AllowedResult,
    /// The names of the grammar's rules that generated this reply, for the report of a failure.
    pub made_of: Vec<&'static str>,
}

impl HostileReply {
    /// Generates the hostile reply for this seed. Equal seeds give equal replies.
    pub fn from_seed(seed: u64) -> HostileReply {
        let mut rng = Rng::new(mix(seed, 0x0068_6f73_7469_6c65));
        let mut draft =
            if rng.below(2) == 0 { h1_reply_generator::reply(&mut rng) } else { h2_reply_generator::reply(&mut rng) };
        if rng.below(2) == 0 {
            damage::damage(&mut draft, &mut rng);
        }
        draft.split_writes(&mut rng);
        draft.finish()
    }

    /// Returns `true` if the server may leave the connection open after the reply, so that only the
    /// client's time limit ends its wait.
    pub fn may_stall(&self) -> bool {
        self.end == ReplyEnd::Stall
    }
}
