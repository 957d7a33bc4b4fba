//! The option `--split`: sets the maximum number of connections for one body.

use super::prelude::*;

pub(super) struct SplitFlag;

impl FlagDefinition for SplitFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "split",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Maximum number of connections for one body",
            doc: "Maximum number of connections used to fetch parts of one body, from 1 to 256. More than one is used \
                  only where the server proves that it sends exact parts of one unchanged file, and only while that \
                  makes the transfer faster; the output is the same, in order. Memory stays within --max-memory. 1 \
                  turns splitting off. The default is --parallel-max-host, or 6 without it; a number given here does not \
                  depend on it.",
            example: "haul --split 1 -O https://example.com/file.tar.gz",
            see_also: "parallel-max-host max-memory",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let most = value.number_in(1, 256)?;
        args.transfer().split = Some(most as usize);
        Ok(())
    }
}
