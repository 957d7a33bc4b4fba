//! The option `--progress-meter`: shows the progress. On by default if standard error is a
//! terminal.

use super::prelude::*;

pub(super) struct ProgressMeterFlag;

impl FlagDefinition for ProgressMeterFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "progress-meter",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: false,
            help: "Show progress (default on a terminal)",
            doc: "Shows progress on stderr if that is a terminal, and nothing else is printed on it meanwhile. \
                  --no-progress-meter hides progress only; -s hides messages too.",
            example: "haul --no-progress-meter -o file https://example.com/file",
            see_also: "silent",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.progress = value.is_on();
        Ok(())
    }
}
