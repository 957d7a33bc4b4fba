//! The option `--verbose` (`-v`): prints the heads of requests and responses.

use super::prelude::*;
use crate::plan::TraceFormat;

pub(super) struct VerboseFlag;

impl FlagDefinition for VerboseFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "verbose",
            short: Some('v'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: true,
            help: "Show requests and replies",
            doc: "Shows the heads of requests and replies on stderr, without the values of credentials \
                  and cookies. -vv adds --trace-ids and --trace-time; -vvv shows contents, too, as \
                  --trace-ascii does.",
            example: "haul -v https://example.com/",
            see_also: "stats include",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.trace.form = if value.is_on() { TraceFormat::Lines } else { TraceFormat::Off };
        args.global.trace.file = None;
        Ok(())
    }
}
