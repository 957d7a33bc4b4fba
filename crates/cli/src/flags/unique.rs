//! The option `--unique`: prints each extracted value only once.

use super::prelude::*;

pub(super) struct UniqueFlag;

impl FlagDefinition for UniqueFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "unique",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Print each value once",
            doc: "Prints each value that --extract or --select finds only once. What does not fit in --max-memory goes to \
                  temporary files. Values that feed a --then are always unique. Belongs to the stage opened by the \
                  last --then.",
            example: "haul --extract '[0-9]+' --unique https://example.com/",
            see_also: "extract sort",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().unique = value.is_on();
        Ok(())
    }
}
