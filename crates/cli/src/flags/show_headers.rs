//! The option `--show-headers`: another name of `--include`.

use super::prelude::*;

pub(super) struct ShowHeadersFlag;

impl FlagDefinition for ShowHeadersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "show-headers",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "The same as --include",
            doc: "The newer name of --include.",
            example: "haul --show-headers https://example.com/",
            see_also: "include",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().include = value.is_on();
        Ok(())
    }
}
