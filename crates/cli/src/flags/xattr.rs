//! The option `--xattr`: stores the URL and the media type in extended attributes of the output
//! file.

use super::prelude::*;

pub(super) struct XattrFlag;

impl FlagDefinition for XattrFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "xattr",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Store the URL in the file's attributes",
            doc: "Stores the URL and the media type of a body in the extended attributes of its file: \
                  user.xdg.origin.url, user.mime_type and the like.",
            example: "haul --xattr -O https://example.com/file",
            see_also: "remote-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().xattr = value.is_on();
        Ok(())
    }
}
