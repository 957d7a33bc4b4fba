//! The option `--compressed`: asks for compressed content and decodes it.

use super::prelude::*;

pub(super) struct CompressedFlag;

impl FlagDefinition for CompressedFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "compressed",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Ask for a compressed reply",
            doc: "Asks for gzip, deflate, br or zstd and delivers the decoded body. On by default only for stages \
                  with --extract; --no-compressed turns it off there.",
            example: "haul --compressed https://example.com/",
            see_also: "extract",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().compressed = Some(value.is_on());
        Ok(())
    }
}
