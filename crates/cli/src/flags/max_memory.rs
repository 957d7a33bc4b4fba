//! The option `--max-memory`: limits the memory for output that waits until earlier output is
//! written.

use super::prelude::*;

pub(super) struct MaxMemoryFlag;

impl FlagDefinition for MaxMemoryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "max-memory",
            short: None,
            syntax: FlagSyntax::Value("bytes"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Memory for output that waits its turn",
            doc: "Limits the bytes that wait while an earlier URL is still being printed, the values that --unique \
                  and --sort hold, and the windows of decoders (zstd, brotli). K, M and G (powers of 1024) may follow the number. Default 64M; the \
                  process uses at most 32 MB beyond it.",
            example: "haul --max-memory 256M --input-file list.txt",
            see_also: "unordered parallel-max",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.max_memory = value.size()?;
        Ok(())
    }
}
