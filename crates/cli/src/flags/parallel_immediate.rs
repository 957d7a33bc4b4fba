//! The option `--parallel-immediate`: opens a connection for each transfer instead of waiting for
//! one to share.

use super::prelude::*;

pub(super) struct ParallelImmediateFlag;

impl Flag for ParallelImmediateFlag {
    fn spec(&self) -> &'static FlagSpec {
        &FlagSpec {
            long: "parallel-immediate",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Open connections at once",
            doc: "Opens a connection for each transfer rather than wait for one that can be shared. haul always does \
                  so for HTTP/1.",
            example: "haul -Z --parallel-immediate https://example.com/a https://example.com/b",
            see_also: &["parallel"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}
