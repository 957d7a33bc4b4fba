//! The option `--sort`: prints extracted values in sorted order.

use super::prelude::*;

pub(super) struct SortFlag;

impl FlagDefinition for SortFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "sort",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Print values sorted",
            doc: "Prints the values that --extract or --select finds at the end, sorted by byte; after Ctrl-C those so \
                  far. What does not fit in --max-memory goes to temporary files. Belongs to the stage opened by the last \
                  --then.",
            example: "haul --extract '[0-9]+' --sort https://example.com/",
            see_also: "extract unique",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().sort = value.is_on();
        Ok(())
    }
}
