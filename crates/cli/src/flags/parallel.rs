//! The option `--parallel` (`-Z`): runs transfers in parallel. On by default, except for the curl
//! persona.

use super::prelude::*;

pub(super) struct ParallelFlag;

impl FlagDefinition for ParallelFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "parallel",
            short: Some('Z'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Transfer in parallel (default)",
            doc: "Fetches many URLs at the same time and prints them in input order. This is the default; \
                  --no-parallel fetches one after the other. Groups that a \"next\" of a config file separates run \
                  at the same time as well; those that a --next on the command line separates run one after the \
                  other, unless -Z is given.",
            example: "haul --no-parallel 'https://example.com/[1-9]'",
            see_also: "parallel-max parallel-max-host unordered",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        (args.global.parallel, args.global.parallel_groups) = (value.is_on(), value.is_on());
        Ok(())
    }
}
