//! A reply under construction, and marks that say whether its parts so far are valid.

use super::{AllowedResult, HostileProtocol, HostileReply, ReplyEnd, ReplyPiece};
use crate::byte_pattern::BytePattern;
use crate::rng::Rng;

/// The largest number of writes into which one piece of a reply is split.
const MAX_CUTS: u64 = 12;

/// A hostile reply under construction, and flags for the violations of the protocol that it
/// contains so far.
pub(super) struct ReplyDraft {
    pub(super) protocol: HostileProtocol,
    pub(super) pieces: Vec<ReplyPiece>,
    pub(super) end: ReplyEnd,
    pub(super) body: Vec<u8>,
    /// True if the head of the reply certainly violates the protocol.
    pub(super) head_is_broken: bool,
    /// True if the body of the reply is certainly incomplete or malformed. Has no meaning for a
    /// reply without a body.
    pub(super) body_is_broken: bool,
    /// True if a client may either accept or refuse the reply.
    pub(super) is_unsure: bool,
    /// True if the reply was damaged at random after it had been generated.
    pub(super) is_damaged: bool,
    pub(super) made_of: Vec<&'static str>,
}

impl ReplyDraft {
    pub(super) fn new(protocol: HostileProtocol) -> ReplyDraft {
        ReplyDraft {
            protocol,
            pieces: vec![ReplyPiece::Await(1)],
            end: ReplyEnd::Close,
            body: Vec::new(),
            head_is_broken: false,
            body_is_broken: false,
            is_unsure: false,
            is_damaged: false,
            made_of: Vec::new(),
        }
    }

    pub(super) fn add_note(&mut self, what: &'static str) {
        self.made_of.push(what);
    }

    /// Appends bytes to the reply. Bytes that are appended one after another are sent in one write.
    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        match self.pieces.last_mut() {
            Some(ReplyPiece::Send(held)) => held.extend_from_slice(bytes.as_ref()),
            _ => self.pieces.push(ReplyPiece::Send(bytes.as_ref().to_vec())),
        }
    }

    pub(super) fn repeat(&mut self, bytes: impl Into<Vec<u8>>, times: u32) {
        self.pieces.push(ReplyPiece::Repeat(bytes.into(), times));
    }

    /// Chooses at random whether the connection ends with a stall or a reset. In most cases,
    /// neither is chosen, and the end of the connection is not changed.
    pub(super) fn choose_end(&mut self, rng: &mut Rng) {
        match rng.below(40) {
            0 => {
                self.end = ReplyEnd::Stall;
                self.is_unsure = true;
                self.add_note("stall");
            }
            1..=3 => {
                self.end = ReplyEnd::Reset;
                // A reset may lose bytes in flight.
                self.is_unsure = true;
                self.add_note("reset");
            }
            _ => {}
        }
    }

    /// Splits some pieces of the reply into several writes, so that the client receives them in
    /// parts.
    pub(super) fn split_writes(&mut self, rng: &mut Rng) {
        if rng.below(3) > 0 {
            return;
        }
        let mut pieces = Vec::new();
        for piece in self.pieces.drain(..) {
            let ReplyPiece::Send(mut bytes) = piece else {
                pieces.push(piece);
                continue;
            };
            for _ in 0..rng.below(MAX_CUTS) {
                if bytes.len() > 1 {
                    let rest = bytes.split_off(1 + rng.below(bytes.len() as u64 - 1) as usize);
                    pieces.push(ReplyPiece::Send(std::mem::replace(&mut bytes, rest)));
                }
            }
            pieces.push(ReplyPiece::Send(bytes));
        }
        self.pieces = pieces;
    }

    pub(super) fn finish(self) -> HostileReply {
        let promise = if self.is_damaged {
            AllowedResult::Nothing
        } else if self.head_is_broken {
            AllowedResult::Failure
        } else if self.is_unsure {
            AllowedResult::Nothing
        } else if self.body_is_broken {
            AllowedResult::Failure
        } else {
            AllowedResult::Body(self.body)
        };
        HostileReply { protocol: self.protocol, pieces: self.pieces, end: self.end, promise, made_of: self.made_of }
    }
}

/// Returns a random body. Its length is often a length at which programs change their behaviour,
/// such as the size of a buffer.
pub(super) fn body(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(8) {
        0 => 0,
        1 => 1,
        2 => 1 + rng.below(100),
        3 => 16_384,
        4 => 65_536 + rng.below(3) - 1,
        5 => rng.below(300_000),
        _ => rng.below(5_000),
    };
    BytePattern::new(rng.next()).slice(0, length as usize)
}

/// Returns one of the choices at random.
pub(super) fn random_choice<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}
