//! The option `--silent` (`-s`): prints neither progress nor messages.

use super::prelude::*;

pub(super) struct SilentFlag;

impl FlagDefinition for SilentFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "silent",
            short: Some('s'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: true,
            help: "Show neither progress nor messages",
            doc: "Prints nothing but the output. -S brings messages about failures back.",
            example: "haul -s https://example.com/",
            see_also: "show-error progress-meter",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.silent = value.is_on();
        Ok(())
    }
}
