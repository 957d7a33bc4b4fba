//! The option `--include` (`-i`): prints the header fields of the response before its body.

use super::prelude::*;

pub(super) struct IncludeFlag;

impl FlagDefinition for IncludeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "include",
            short: Some('i'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: true,
            help: "Print reply headers before the body",
            doc: "Prints the status line and header fields of each reply, then the body.",
            example: "haul -i https://example.com/",
            see_also: "head dump-header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().include = value.is_on();
        Ok(())
    }
}
