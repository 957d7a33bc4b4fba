//! The option `--globoff` (`-g`): takes brackets and braces in URLs literally.

use super::prelude::*;

pub(super) struct GloboffFlag;

impl FlagDefinition for GloboffFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "globoff",
            short: Some('g'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Take brackets and braces in URLs literally",
            doc: "Takes brackets and braces in URLs literally. Without it [1-3], [a-z:2] and {a,b} stand for several \
                  URLs.",
            example: "haul -g 'https://example.com/?list[0]=x'",
            see_also: "url",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().globoff = value.is_on();
        Ok(())
    }
}
