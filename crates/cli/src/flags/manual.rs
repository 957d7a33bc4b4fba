//! The option `--manual` (`-M`): prints the documentation of all options.

use super::prelude::*;
use crate::parsed_args::InfoOption;

pub(super) struct ManualFlag;

impl FlagDefinition for ManualFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "manual",
            short: Some('M'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::General,
            important: false,
            help: "Show the whole manual",
            doc: "Prints the full documentation of every option.",
            example: "haul --manual",
            see_also: "help",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.info = Some(InfoOption::Manual);
        Ok(())
    }
}
