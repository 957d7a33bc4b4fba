//! The option `--max-redirs`: sets the maximum number of redirects that are followed.

use super::prelude::*;

pub(super) struct MaxRedirsFlag;

impl FlagDefinition for MaxRedirsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "max-redirs",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Http,
            important: false,
            help: "Maximum number of redirects",
            doc: "Fails with 47 at the first redirect beyond NUM. Default 50; -1 means no limit.",
            example: "haul --max-redirs 3 https://example.com/",
            see_also: "location",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.redirects.max = match value.bytes() {
            b"-1" => u32::MAX,
            _ => u32::try_from(value.number()?).unwrap_or(u32::MAX),
        };
        Ok(())
    }
}
