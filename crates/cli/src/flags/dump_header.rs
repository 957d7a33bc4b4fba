//! The option `--dump-header` (`-D`): writes the header fields of responses to a file.

use super::prelude::*;

pub(super) struct DumpHeaderFlag;

impl FlagDefinition for DumpHeaderFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "dump-header",
            short: Some('D'),
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Output,
            important: false,
            help: "Write reply headers to a file",
            doc: "Writes the status line and header fields of each reply to FILE as they arrive. \"-\" is standard \
                  output; with many URLs each head then stands before its body.",
            example: "haul -D headers.txt -o body https://example.com/",
            see_also: "include",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().dump_header = Some(value.path()?);
        Ok(())
    }
}
