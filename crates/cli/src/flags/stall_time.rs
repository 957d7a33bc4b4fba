//! The option `--stall-time`: sets how long a transfer may make no progress.

use super::prelude::*;

pub(super) struct StallTimeFlag;

impl FlagDefinition for StallTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "stall-time",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: false,
            help: "How long a transfer may make no progress",
            doc: "Fails with 28 if no byte of a body arrives or leaves for this time, in decimal seconds; with many \
                  URLs also while a response is awaited. Default 60 for many URLs, 300 for one, none in curl's place; \
                  0 means no limit. It is retried like other timeouts. The time does not count while the output or \
                  the content to send is what haul waits for.",
            example: "haul --stall-time 20 --input-file urls.txt",
            see_also: "speed-time connect-timeout max-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().stall_time = Some(value.seconds_for(args.global.persona)?);
        Ok(())
    }
}
