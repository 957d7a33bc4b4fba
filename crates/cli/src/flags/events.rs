//! The option `--events`: writes the events of a run for programs that watch it.

use super::prelude::*;

pub(super) struct EventsFlag;

impl FlagDefinition for EventsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "events",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Verbose,
            important: false,
            help: "Write events for a program that watches",
            doc: "Writes one JSON object a line to FILE, or to the open descriptor with this number (- is standard \
                  output): the start of the run, each URL that is done or has failed, each retry, the progress once a \
                  second, and the end. A FILE that exists is replaced; ./3 is a file. docs/events.schema.json describes \
                  the lines. If the reader of a pipe leaves, the events end, and the run goes on. With or without this \
                  option, SIGUSR1 (also Ctrl-T on macOS and BSD) prints the progress of a run of many URLs on stderr.",
            example: "haul --events events.jsonl --input-file list.txt",
            see_also: "jsonl stats write-out",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.events = match value.bytes() {
            b"" => return Err(UsageErrorReason::bad_use("it needs the name of a file, or the number of a descriptor")),
            _ => Some(value.path()?),
        };
        Ok(())
    }
}
