//! The option `--threads`: sets the maximum number of worker threads.

use super::prelude::*;

pub(super) struct ThreadsFlag;

impl FlagDefinition for ThreadsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "threads",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Maximum number of worker threads",
            doc: "Maximum number of worker threads, from 1 to 1024. The default is one a core; threads start only \
                  when there is work for them.",
            example: "haul --threads 1 --input-file list.txt",
            see_also: "parallel-max",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let most = value.number_in(1, 1024)?;
        args.global.threads = Some(most as usize);
        Ok(())
    }
}
