//! The option `--stats`: prints the statistics of the run at its end.

use super::prelude::*;
use crate::plan::StatsFormat;

pub(super) struct StatsFlag;

impl FlagDefinition for StatsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "stats",
            short: None,
            syntax: FlagSyntax::Optional("json"),
            category: HelpCategory::Verbose,
            important: true,
            help: "Print statistics",
            doc: "Prints requests, bytes, bytes on the wire, packets, connections and time by phase on stderr at the \
                  end, also after Ctrl-C; \"=json\" prints one JSON object.",
            example: "haul --stats=json 'https://example.com/[1-9]'",
            see_also: "write-out verbose",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.stats = Some(match value.bytes() {
            b"" | b"text" => StatsFormat::Text,
            b"json" => StatsFormat::Json,
            _ => return Err(UsageErrorReason::bad_use("the formats are text and json")),
        });
        Ok(())
    }
}
