//! The option `--version` (`-V`): prints the version of haul and its features.

use super::prelude::*;
use crate::parsed_args::InfoOption;

pub(super) struct VersionFlag;

impl FlagDefinition for VersionFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "version",
            short: Some('V'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::General,
            important: true,
            help: "Show the version",
            doc: "Shows the version, protocols and features.",
            example: "haul --version",
            see_also: "help",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.info = Some(InfoOption::Version);
        Ok(())
    }
}
