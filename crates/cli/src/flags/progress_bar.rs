//! The option `--progress-bar` (`-#`): shows the progress as a bar.

use super::prelude::*;

pub(super) struct ProgressBarFlag;

impl FlagDefinition for ProgressBarFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "progress-bar",
            short: Some('#'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: false,
            help: "Show progress as a bar",
            doc: "Draws a bar instead of figures, even if stderr is not a terminal. Only for a single body whose \
                  length is known.",
            example: "haul -# -o file https://example.com/file",
            see_also: "progress-meter",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.progress_bar = value.is_on();
        Ok(())
    }
}
