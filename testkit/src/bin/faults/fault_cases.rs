//! The table of faults. Each row has the fault plan of the origin and the acceptable results of
//! haul.

use std::time::Duration;

use testkit::faulty::{
    BodyBreak, BodyBreakOffset, BreakKind, ContentChangeTrigger, EtagKind, FaultPlan, WrongContentRange,
};
use testkit::rng::Rng;

/// A row of the fault table: a fault of the origin, and the acceptable results of haul.
pub(crate) struct FaultCase {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Exit codes of haul that are acceptable in addition to 0. If the list is empty, haul must
    /// succeed in spite of the fault.
    pub(crate) codes: &'static [i32],
    /// The `--max-time` of haul, for a fault that only a time limit ends. `None` means two thirds
    /// of the limit after which the runner kills haul.
    pub(crate) max_time: Option<Duration>,
    pub(crate) over: FaultHttpVersions,
    pub(crate) make: fn(&mut FaultRandomChoices, &mut FaultPlan),
}

/// The version of HTTP that haul uses in a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestedVersion {
    Http1,
    Http2,
    Http3,
}

/// The versions of HTTP over which a fault of the fault table ([`FAULTS`]) can happen.
#[derive(Clone, Copy)]
pub(crate) enum FaultHttpVersions {
    All,
    Http1,
    /// HTTP/2 and HTTP/3, which have multiple streams in a connection.
    Streams,
    /// HTTP/2 alone, for the faults that send GOAWAY and close the connection at once. Over HTTP/3,
    /// they cannot happen: when a connection is closed, quinn discards a GOAWAY that it has not
    /// sent.
    Http2,
}

impl FaultHttpVersions {
    pub(crate) fn contain(self, version: TestedVersion) -> bool {
        match self {
            FaultHttpVersions::All => true,
            FaultHttpVersions::Http1 => version == TestedVersion::Http1,
            FaultHttpVersions::Streams => version != TestedVersion::Http1,
            FaultHttpVersions::Http2 => version == TestedVersion::Http2,
        }
    }
}

impl FaultCase {
    /// Returns `true` if `code`, an exit code of haul other than 0, is acceptable for this fault.
    /// The exit codes in `codes` are acceptable. If `codes` is not empty and the fault has no time
    /// limit of its own (`max_time`), 16 (connection error) and 92 (stream error) are acceptable
    /// over HTTP/2, too, and 95 over HTTP/3.
    pub(crate) fn allows(&self, code: i32, version: TestedVersion) -> bool {
        let more: &[i32] = match version {
            TestedVersion::Http1 => &[],
            TestedVersion::Http2 => &[16, 92],
            TestedVersion::Http3 => &[95],
        };
        self.codes.contains(&code) || !self.codes.is_empty() && self.max_time.is_none() && more.contains(&code)
    }
}

/// The random choices of one run of a fault, such as the offset at which the body breaks.
pub(crate) struct FaultRandomChoices {
    pub(crate) rng: Rng,
    /// The offset in the body at which this run's fault happens. It is below the body's size.
    pub(crate) offset: u64,
}

impl FaultRandomChoices {
    /// Makes the choices for a body of `size` bytes. Half of the offsets are chosen from the whole
    /// body; the others are at or next to the offsets where programs split a body.
    pub(crate) fn new(mut rng: Rng, size: u64) -> FaultRandomChoices {
        let offset = match rng.below(8) {
            0 => [0, 1, size - 1, size / 2][rng.below(4) as usize],
            1..=3 => {
                let power = 12 + rng.below(10);
                let near = (1 + rng.below((size >> power).max(1))) << power;
                (near + rng.below(3)).saturating_sub(1)
            }
            _ => rng.below(size),
        };
        FaultRandomChoices { rng, offset: offset.min(size - 1) }
    }

    /// Returns a random number from 1 up to `most`.
    fn random_up_to(&mut self, most: u64) -> u64 {
        1 + self.rng.below(most)
    }

    /// Returns a random number with an absolute value from 1 to `most`.
    fn nonzero_difference(&mut self, most: i64) -> i64 {
        let by = self.random_up_to(most as u64) as i64;
        if self.rng.below(2) == 0 { by } else { -by }
    }

    /// Adds a fault to the fault plan (the faults to simulate): the connection is closed at the
    /// chosen offset of the body, in the first response only. Even a client with a single stream
    /// must then request a range for the remaining bytes.
    fn add_close(&self, plan: &mut FaultPlan) {
        plan.breaks.push(BodyBreak::close_at(self.offset).times(1));
    }
}

/// The curl exit codes that are acceptable for a body that breaks off.
const BROKEN_CODES: &[i32] = &[18, 52, 55, 56];
/// The curl exit codes that are acceptable for a range that was refused or answered wrongly.
const RANGE_CODES: &[i32] = &[18, 33, 36, 56];
/// The curl exit codes that are acceptable for refused ranges and an error status.
const STATUS_CODES: &[i32] = &[18, 22, 33, 36, 56];
/// The curl exit codes that are acceptable for refused ranges and an unknown content coding.
const CODING_CODES: &[i32] = &[18, 33, 36, 56, 61];
const TIMEOUT_CODES: &[i32] = &[28];
const NO_ERROR_CODES: &[i32] = &[];

const SHORT_TIME: Duration = Duration::from_secs(2);

const fn fault(
    name: &'static str,
    about: &'static str,
    codes: &'static [i32],
    make: fn(&mut FaultRandomChoices, &mut FaultPlan),
) -> FaultCase {
    FaultCase { name, about, codes, max_time: None, over: FaultHttpVersions::All, make }
}

const fn with_short_timeout(fault: FaultCase) -> FaultCase {
    FaultCase { max_time: Some(SHORT_TIME), ..fault }
}

const fn with_versions(over: FaultHttpVersions, fault: FaultCase) -> FaultCase {
    FaultCase { over, ..fault }
}

pub(crate) const FAULTS: &[FaultCase] = &[
    fault("honest", "nothing is wrong", NO_ERROR_CODES, |_, _| {}),
    // Breaks.
    fault("reset-once", "one reset at the offset", NO_ERROR_CODES, |c, p| {
        p.breaks.push(BodyBreak::reset_at(c.offset).times(1))
    }),
    fault("reset-twice", "two resets at the offset", NO_ERROR_CODES, |c, p| {
        p.breaks.push(BodyBreak::reset_at(c.offset).times(2))
    }),
    fault("reset-always", "a reset whenever the offset is reached", BROKEN_CODES, |c, p| {
        p.breaks.push(BodyBreak::reset_at(c.offset));
    }),
    fault("reset-each", "every body is reset after some bytes", BROKEN_CODES, |c, p| {
        let place = BodyBreakOffset::After(p.size / 4 + c.offset / 2);
        p.breaks.push(BodyBreak { place, ..BodyBreak::reset_at(0) });
    }),
    fault("close-once", "one early close at the offset", NO_ERROR_CODES, |c, p| c.add_close(p)),
    fault("close-twice", "two early closes at the offset", NO_ERROR_CODES, |c, p| {
        p.breaks.push(BodyBreak::close_at(c.offset).times(2));
    }),
    fault("close-always", "an early close whenever the offset is reached", BROKEN_CODES, |c, p| {
        p.breaks.push(BodyBreak::close_at(c.offset));
    }),
    fault("close-each", "every body is closed after some bytes", BROKEN_CODES, |c, p| {
        let place = BodyBreakOffset::After(p.size / 4 + c.offset / 2);
        p.breaks.push(BodyBreak { place, ..BodyBreak::close_at(0) });
    }),
    fault("stall-short", "200 ms of nothing at the offset", NO_ERROR_CODES, |c, p| {
        p.breaks.push(BodyBreak::stall_at(c.offset).times(1));
        p.stall = Some(Duration::from_millis(200));
    }),
    with_short_timeout(fault(
        "stall-once",
        "nothing more, for ever, for the first body at the offset",
        TIMEOUT_CODES,
        |c, p| {
            p.breaks.push(BodyBreak::stall_at(c.offset).times(1));
        },
    )),
    with_short_timeout(fault("stall-always", "nothing more, for ever, at the offset", TIMEOUT_CODES, |c, p| {
        p.breaks.push(BodyBreak::stall_at(c.offset));
    })),
    fault("storm", "a reset, a stall, a close and a 503 at several places", &[18, 22, 33, 36, 52, 55, 56], |c, p| {
        p.breaks.push(BodyBreak::reset_at(c.offset).times(1));
        p.breaks.push(BodyBreak::stall_at(c.rng.below(p.size)).times(2));
        p.breaks.push(BodyBreak::close_at(c.rng.below(p.size)).times(1));
        p.stall = Some(Duration::from_millis(50));
        (p.unavailable, p.retry_after) = (1, Some(0));
    }),
    // Ranges.
    fault("ignore-range", "200 for every range", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.ignore_range = true;
    }),
    fault("range-start", "Content-Range begins elsewhere", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.content_range = Some(WrongContentRange::Start(c.nonzero_difference(1000)));
    }),
    fault("range-end", "Content-Range ends elsewhere", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.content_range = Some(WrongContentRange::End(c.nonzero_difference(1000)));
    }),
    fault("range-total", "Content-Range has another total", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.content_range = Some(WrongContentRange::Total(c.nonzero_difference(1000)));
    }),
    fault("range-unit", "Content-Range has another unit", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.content_range = Some(WrongContentRange::Unit);
    }),
    fault("range-missing", "a 206 without Content-Range", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.content_range = Some(WrongContentRange::Missing);
    }),
    fault("part-short", "every part ends early", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.short = c.random_up_to(5000);
    }),
    fault("part-length-less", "Content-Length of a part is too small, and so is the part", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.part_length = -(c.random_up_to(5000) as i64);
    }),
    fault("part-length-more", "Content-Length of a part is too large", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.part_length = c.random_up_to(5000) as i64;
    }),
    fault("chunked", "parts are chunked", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.chunked = true;
    }),
    fault("chunked-short", "parts are chunked and end early, in order", RANGE_CODES, |c, p| {
        c.add_close(p);
        (p.chunked, p.short) = (true, c.random_up_to(5000));
    }),
    fault("gzip", "parts are gzip-coded", CODING_CODES, |c, p| {
        c.add_close(p);
        p.gzip = true;
    }),
    fault("slow-ranges", "parts have a quarter of the rate", NO_ERROR_CODES, |c, p| {
        c.add_close(p);
        p.range_rate = p.rate.map(|rate| rate / 4);
    }),
    fault("unavailable-once", "503, Retry-After: 0, for the first range", STATUS_CODES, |c, p| {
        c.add_close(p);
        (p.unavailable, p.retry_after) = (1, Some(0));
    }),
    fault("unavailable-later", "503, Retry-After: 1, for the first range", STATUS_CODES, |c, p| {
        c.add_close(p);
        (p.unavailable, p.retry_after) = (1, Some(1));
    }),
    fault("unavailable-always", "503 for every range", STATUS_CODES, |c, p| {
        c.add_close(p);
        p.unavailable = u64::MAX / 2;
    }),
    fault("refuse-416-once", "a wrong 416 for the first range", STATUS_CODES, |c, p| {
        c.add_close(p);
        p.refuse_416 = 1;
    }),
    fault("refuse-416-always", "a wrong 416 for every range", STATUS_CODES, |c, p| {
        c.add_close(p);
        p.refuse_416 = u64::MAX / 2;
    }),
    fault("connections-1", "one body at a time, the others are reset", NO_ERROR_CODES, |_, p| p.connections = Some(1)),
    fault("connections-2", "two bodies at a time, the others are reset", NO_ERROR_CODES, |_, p| {
        p.connections = Some(2)
    }),
    with_versions(
        FaultHttpVersions::Http1,
        fault("garbage", "bytes of no reply after each whole", NO_ERROR_CODES, |c, p| p.garbage = c.random_up_to(100)),
    ),
    with_versions(
        FaultHttpVersions::Http1,
        fault("garbage-parts", "the same, after a cut", RANGE_CODES, |c, p| {
            c.add_close(p);
            p.garbage = c.random_up_to(100);
        }),
    ),
    // The first reply.
    fault("whole-longer", "Content-Length of the 200 is too large", RANGE_CODES, |c, p| {
        p.whole_length = c.random_up_to(5000) as i64;
    }),
    fault(
        "whole-shorter",
        "Content-Length of the 200 is too small: what is beyond cannot be seen",
        RANGE_CODES,
        |c, p| {
            p.whole_length = -(c.random_up_to(5000) as i64);
        },
    ),
    fault("unasked-206", "206 for a request without Range", &[8, 18, 33, 56], |_, p| p.unasked_206 = Some(0)),
    fault("unasked-206-later", "the same, from the offset on", &[8, 18, 33, 36, 56], |c, p| {
        p.unasked_206 = Some(c.offset);
    }),
    // Other content.
    fault("change", "other content after the offset, said by 200", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.change = Some(ContentChangeTrigger::Bytes(c.offset));
    }),
    fault("change-206", "other content after the offset, sent as a part with the new ETag", RANGE_CODES, |c, p| {
        c.add_close(p);
        (p.change, p.ignore_if_range) = (Some(ContentChangeTrigger::Bytes(c.offset)), true);
    }),
    fault("change-size", "other content of another size, said by 200", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.change = Some(ContentChangeTrigger::Bytes(c.offset));
        p.new_size = Some(p.size.saturating_add_signed(c.nonzero_difference(5000)));
    }),
    fault("change-size-206", "other content of another size, sent as a part", RANGE_CODES, |c, p| {
        c.add_close(p);
        (p.change, p.ignore_if_range) = (Some(ContentChangeTrigger::Bytes(c.offset)), true);
        p.new_size = Some(p.size.saturating_add_signed(c.nonzero_difference(5000)));
    }),
    fault("change-at-once", "other content from the second request on, nothing breaks", RANGE_CODES, |_, p| {
        p.change = Some(ContentChangeTrigger::Requests(1));
    }),
    fault("change-in-time", "other content after a moment, and a cut", RANGE_CODES, |c, p| {
        c.add_close(p);
        p.change = Some(ContentChangeTrigger::Time(Duration::from_millis(c.random_up_to(400))));
        p.ignore_if_range = c.rng.below(2) == 0;
    }),
    fault("change-weak", "the same with weak ETags", RANGE_CODES, |c, p| {
        c.add_close(p);
        (p.change, p.ignore_if_range) = (Some(ContentChangeTrigger::Bytes(c.offset)), true);
        p.etag = EtagKind::Weak;
    }),
    fault("change-dated", "the same with Last-Modified alone", RANGE_CODES, |c, p| {
        c.add_close(p);
        (p.change, p.ignore_if_range) = (Some(ContentChangeTrigger::Bytes(c.offset)), true);
        p.etag = EtagKind::None;
    }),
    // Requests refused before they are processed: a reset instead of a reply, REFUSED_STREAM,
    // H3_REQUEST_REJECTED.
    fault("refused-once", "the first request is refused", NO_ERROR_CODES, |_, p| p.refuse = 1),
    fault("refused-always", "every request is refused", &[52, 55, 56], |_, p| p.refuse = u64::MAX),
    // Faults of streams.
    with_versions(
        FaultHttpVersions::Streams,
        fault("rst-once", "the stream is reset at the offset, once", NO_ERROR_CODES, |c, p| {
            p.breaks.push(BodyBreak::rst_at(c.offset).times(1));
        }),
    ),
    with_versions(
        FaultHttpVersions::Streams,
        fault("rst-twice", "the stream is reset at the offset, twice", NO_ERROR_CODES, |c, p| {
            p.breaks.push(BodyBreak::rst_at(c.offset).times(2));
        }),
    ),
    with_versions(
        FaultHttpVersions::Streams,
        fault("rst-always", "the stream is reset whenever the offset is reached", BROKEN_CODES, |c, p| {
            p.breaks.push(BodyBreak::rst_at(c.offset));
        }),
    ),
    with_versions(
        FaultHttpVersions::Streams,
        fault("goaway", "GOAWAY at the offset; what is under way goes on", NO_ERROR_CODES, |c, p| {
            p.breaks.push(BodyBreak { how: BreakKind::GoAway, ..BodyBreak::rst_at(c.offset) });
        }),
    ),
    with_versions(
        FaultHttpVersions::Streams,
        fault("goaway-rst", "GOAWAY at the offset, the stream is reset at another", NO_ERROR_CODES, |c, p| {
            p.breaks.push(BodyBreak { how: BreakKind::GoAway, ..BodyBreak::rst_at(c.offset) }.times(1));
            p.breaks.push(BodyBreak::rst_at(c.rng.below(p.size)).times(1));
        }),
    ),
    with_versions(
        FaultHttpVersions::Http2,
        fault("goaway-cut-once", "GOAWAY and the connection's end at the offset, once", NO_ERROR_CODES, |c, p| {
            p.breaks.push(BodyBreak { how: BreakKind::GoAwayCut, ..BodyBreak::rst_at(c.offset) }.times(1));
        }),
    ),
    with_versions(
        FaultHttpVersions::Http2,
        fault("goaway-cut-always", "the same whenever the offset is reached", BROKEN_CODES, |c, p| {
            p.breaks.push(BodyBreak { how: BreakKind::GoAwayCut, ..BodyBreak::rst_at(c.offset) });
        }),
    ),
];

/// Prints each fault of the table: its name, description and acceptable exit codes.
pub(crate) fn print_faults() {
    for fault in FAULTS {
        let codes: Vec<_> = fault.codes.iter().map(i32::to_string).collect();
        println!(
            "{:20} {} (exit 0{}{})",
            fault.name,
            fault.about,
            if codes.is_empty() { "" } else { ", " },
            codes.join(", ")
        );
    }
}
