//! The option `--job`: keeps the state of the run in a file, so that a later run can continue it.

use super::prelude::*;
use crate::plan::ResumableJobArgs;

pub(super) struct JobFlag;

impl FlagDefinition for JobFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "job",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Parallel,
            important: true,
            help: "Keep the run's state in a file, to go on later",
            doc: "Notes every finished URL in FILE, an SQLite database. After a kill, a crash or a full disk the same \
                  command, or \"haul --job FILE\" alone, goes on: it fetches only what is missing, and continues an \
                  output file after its last whole record. Another command line is refused; limits, rates, \
                  parallelism and verbosity may differ. Secrets are not stored, and are given again. A list from a \
                  pipe is copied into FILE. \"haul job status FILE\" shows the state, \"haul job list --failed FILE\" \
                  the failed URLs, and \"haul job retry FILE\" sets them back (docs/jobs.md).",
            example: "haul --job pages.job --jsonl --input-file list.txt -o pages.jsonl",
            see_also: "input-file jsonl skip-existing retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.job = Some(ResumableJobArgs { file: value.path()?, ..ResumableJobArgs::default() });
        Ok(())
    }
}
