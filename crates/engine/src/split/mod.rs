//! One large body over several connections.
//!
//! It begins as any transfer does: one GET, no range, on the driver that waits, by the direct path. A [`Scout`] watches how
//! it gets on; where it waits for the network and much is left, the open connection moves to an event loop in the middle of
//! its body, and a [crew] of parts helps it: `docs/design/splitting.md`.
//!
//! ```text
//!  blocking ──Scout: worth a try──▶ Crew ──▶ all is there
//!     ▲                              │
//!     └──── alone, from the exact byte, when parts are refused or do not help ────┘
//! ```

mod crew;
mod sinks;

use std::sync::Arc;
use std::time::Instant;

use haul_policy::range::split::{Splitter, StreamSample};

use crate::Result;
use crate::client::Client;
use crate::clock;
use crate::drive::link::Link;
use crate::drive::worker::{self, Supply, Workers};
use crate::request::Split;
use crate::transfer::{Splittable, Transfer};
use crew::Crew;

/// Watches one stream for whether more would help.
pub(crate) enum Scout {
    /// No head has come yet.
    Waiting(Split),
    /// The body stays one stream.
    Never,
    /// The rate of the stream is being measured. (Boxed, because few are measured, and the value
    /// passed on with each exchange is to be small.)
    Watching(Box<(Splitter, Splittable)>),
}

impl Scout {
    /// For a transfer that may be split so.
    pub(crate) fn new(split: Split) -> Self {
        if split.connections < 2 { Self::Never } else { Self::Waiting(split) }
    }

    /// Returns true if the transfer under way on this connection should be split now.
    pub(crate) fn is_worth_trying(&mut self, link: &Link, now: Instant) -> bool {
        match self {
            Self::Never => false,
            Self::Waiting(split) => {
                match link.front().and_then(Transfer::may_split) {
                    None => {}
                    Some(None) => *self = Self::Never,
                    Some(Some(body)) => {
                        let splitter = Splitter::new(split.connections, clock::policy_time(now));
                        *self = Self::Watching(Box::new((splitter, body)));
                    }
                }
                false
            }
            Self::Watching(watched) => watched.0.is_worth_trying(StreamSample {
                now: clock::policy_time(now),
                received: link.front().map_or(0, |transfer| transfer.facts.body_bytes),
                remaining: link.remaining(),
                waited: link.waited(),
            }),
        }
    }
}

/// The result of a split.
pub(crate) enum After {
    /// The transfer is over.
    Done(Result<()>),
    /// The first stream has to continue alone.
    Alone,
}

/// Splits the transfer in progress on `link`, and returns the transfer with its result.
///
/// # Errors
/// The unchanged connection, if the system provides no event loop.
///
/// # Panics
/// If no transfer is under way there, or the scout has not asked for it.
pub(crate) fn run(client: &Client, mut link: Link, scout: Scout) -> Result<(Box<Transfer>, After), Box<Link>> {
    let Scout::Watching(watched) = scout else { panic!("only a scout that watches asks for a split") };
    let (splitter, body) = *watched;
    let first = link.front_mut().expect("a body is under way");
    let split = first.options().split;
    let crew = Crew::new(first, splitter, body, split.memory);
    let supply: Arc<dyn Supply> = crew.clone();
    let workers = Workers { threads: 1, depth: 2, per_host: split.connections };
    match worker::run_with(client, &supply, workers, link) {
        Ok(outcome) => Ok(crew.disband(outcome)),
        Err(mut link) => {
            link.front_mut().expect("a body is under way").end_split();
            Err(link)
        }
    }
}
