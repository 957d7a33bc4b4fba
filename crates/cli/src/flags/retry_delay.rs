//! The option `--retry-delay`: sets a fixed pause before each retry.

use super::prelude::*;

pub(super) struct RetryDelayFlag;

impl FlagDefinition for RetryDelayFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "retry-delay",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: false,
            help: "Fixed pause before a retry",
            doc: "Pauses this long before each retry, in decimal seconds, instead of doubling. 0, the default, means \
                  doubling.",
            example: "haul --retry 5 --retry-delay 0.5 https://example.com/",
            see_also: "retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let delay = value.seconds_for(args.global.persona)?;
        args.transfer().options.retry.delay = (!delay.is_zero()).then_some(delay);
        Ok(())
    }
}
