//! The option `--parallel-max`: sets the maximum number of simultaneous transfers.

use super::prelude::*;
use crate::plan::GlobalArgs;

pub(super) struct ParallelMaxFlag;

impl FlagDefinition for ParallelMaxFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "parallel-max",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Maximum number of transfers at a time",
            doc: "Maximum number of transfers at a time, over all hosts, from 1 to 65535. Default 64. A transfer whose \
                  name lookup or connection attempt has had no answer for 250 ms does not count, up to four for each \
                  slot and 1,024 in all.",
            example: "haul --parallel-max 200 --input-file list.txt",
            see_also: "parallel-max-host",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.parallel_max = match value.number() {
            // curl takes its default for what it cannot do.
            Ok(0 | 65_536..) if args.global.persona.is_curl() => {
                GlobalArgs::with_defaults(args.global.persona).parallel_max
            }
            _ => value.number_in(1, 65_535)? as usize,
        };
        Ok(())
    }
}
