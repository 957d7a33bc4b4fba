//! The option `--head` (`-I`): requests only the header fields, with the method HEAD.

use super::prelude::*;

pub(super) struct HeadFlag;

impl FlagDefinition for HeadFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "head",
            short: Some('I'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: true,
            help: "Fetch headers only",
            doc: "Sends a HEAD request and prints the status line and header fields.",
            example: "haul -I https://example.com/",
            see_also: "include request",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().head = value.is_on();
        Ok(())
    }
}
