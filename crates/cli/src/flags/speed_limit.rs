//! The option `--speed-limit` (`-Y`): sets the speed below which a transfer is too slow, in bytes
//! per second.

use super::prelude::*;
use std::time::Duration;

/// The value of `--speed-time` if only `--speed-limit` is given: 30 s, as in curl.
const SPEED_TIME: Duration = Duration::from_secs(30);

pub(super) struct SpeedLimitFlag;

impl FlagDefinition for SpeedLimitFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "speed-limit",
            short: Some('Y'),
            syntax: FlagSyntax::Value("speed"),
            category: HelpCategory::Limits,
            important: false,
            help: "Give up on transfers slower than this",
            doc: "Fails with 28 if a transfer moves fewer than this many bytes a second for --speed-time, or 30 \
                  seconds if that is not given. 0, the default, means no limit.",
            example: "haul --speed-limit 1000 --speed-time 10 https://example.com/",
            see_also: "speed-time limit-rate max-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.number()?;
        let slowest = &mut args.transfer().speed_limit;
        slowest.bytes_per_second = limit;
        if slowest.time.is_zero() {
            slowest.time = SPEED_TIME;
        }
        Ok(())
    }
}
