//! The option `--netrc-file`: takes user and password from this netrc file.

use super::prelude::*;

pub(super) struct NetrcFileFlag;

impl FlagDefinition for NetrcFileFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "netrc-file",
            short: None,
            syntax: FlagSyntax::Value("filename"),
            category: HelpCategory::Auth,
            important: false,
            help: "Take passwords from this netrc file",
            doc: "Like --netrc, or like --netrc-optional if that is given too, but reads FILE.",
            example: "haul --netrc-file passwords https://example.com/",
            see_also: "netrc netrc-optional",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().netrc_file = Some(value.path()?);
        Ok(())
    }
}
