//! The option `--raw`: does not decode transfer codings.

use super::prelude::*;

pub(super) struct RawFlag;

impl FlagDefinition for RawFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "raw",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Do not undo transfer codings",
            doc: "Delivers chunked bodies as they arrived, including the chunk sizes.",
            example: "haul --raw http://example.com/",
            see_also: "compressed",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.deviations.raw = value.is_on();
        Ok(())
    }
}
