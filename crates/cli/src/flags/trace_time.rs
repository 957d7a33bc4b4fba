//! The option `--trace-time`: begins each line of a trace with the time.

use super::prelude::*;

pub(super) struct TraceTimeFlag;

impl FlagDefinition for TraceTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "trace-time",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: false,
            help: "Put the time before each line of a trace",
            doc: "Puts the time of day (UTC) before each line of -v or --trace.",
            example: "haul -v --trace-time https://example.com/",
            see_also: "trace trace-ids",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.trace.time = value.is_on();
        Ok(())
    }
}
