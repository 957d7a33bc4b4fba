//! The option `--show-error` (`-S`): prints error messages even with `-s`.

use super::prelude::*;

pub(super) struct ShowErrorFlag;

impl FlagDefinition for ShowErrorFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "show-error",
            short: Some('S'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: true,
            help: "Show errors even with -s",
            doc: "Shows the messages about failures that -s would hide.",
            example: "haul -sS https://example.com/",
            see_also: "silent",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.show_error = value.is_on();
        Ok(())
    }
}
