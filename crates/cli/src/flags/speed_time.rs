//! The option `--speed-time` (`-y`): sets the time after which a too slow transfer fails.

use super::prelude::*;
use crate::flag_value::SECONDS_MAX;
use std::time::Duration;

pub(super) struct SpeedTimeFlag;

impl FlagDefinition for SpeedTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "speed-time",
            short: Some('y'),
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: false,
            help: "How long a transfer may be too slow",
            doc: "Fails with 28 if a transfer is slower than --speed-limit for this many whole seconds. If \
                  --speed-limit is not given, it is 1 byte a second, so that only a complete stall counts. 0, the \
                  default, means no limit.",
            example: "haul --speed-time 60 https://example.com/",
            see_also: "speed-limit max-time connect-timeout",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let time = value.number_in(0, SECONDS_MAX)?;
        let slowest = &mut args.transfer().speed_limit;
        slowest.time = Duration::from_secs(time);
        if slowest.bytes_per_second == 0 {
            slowest.bytes_per_second = 1;
        }
        Ok(())
    }
}
