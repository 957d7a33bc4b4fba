//! The option `--retry-max-time`: sets the time after which no further retry begins.

use super::prelude::*;

pub(super) struct RetryMaxTimeFlag;

impl FlagDefinition for RetryMaxTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "retry-max-time",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: false,
            help: "Stop retrying after this long",
            doc: "Starts no retry once this many decimal seconds have passed since the first attempt. 0, the default, \
                  means no limit.",
            example: "haul --retry 5 --retry-max-time 30 https://example.com/",
            see_also: "retry max-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.seconds_for(args.global.persona)?;
        args.transfer().options.retry.max_time = (!limit.is_zero()).then_some(limit);
        Ok(())
    }
}
