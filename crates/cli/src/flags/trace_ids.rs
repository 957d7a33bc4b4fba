//! The option `--trace-ids`: begins each line of a trace with the ids of transfer and connection.

use super::prelude::*;

pub(super) struct TraceIdsFlag;

impl FlagDefinition for TraceIdsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "trace-ids",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: false,
            help: "Number the lines of a trace",
            doc: "Puts the numbers of transfer and connection before each line of -v or --trace. They are always \
                  [0-0], since transfers with -v run one after the other.",
            example: "haul -v --trace-ids https://example.com/",
            see_also: "trace trace-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.trace.ids = value.is_on();
        Ok(())
    }
}
