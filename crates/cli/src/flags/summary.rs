//! The option `--summary`: prints a line with the totals of the run at its end.

use super::prelude::*;

pub(super) struct SummaryFlag;

impl FlagDefinition for SummaryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "summary",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: false,
            help: "Print a line about the run at its end",
            doc: "Prints a line on stderr at the end: the URLs that are done, those that failed with their causes, bytes, \
                  time, requests and connections. By default the line is printed after several URLs if stderr is a \
                  terminal, without -s.",
            example: "haul --summary -O 'https://example.com/[1-9]' 2> log",
            see_also: "stats progress-meter events",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.summary = Some(value.is_on());
        Ok(())
    }
}
