//! The option `--netrc-optional`: takes user and password from the netrc file if it exists and the
//! URL contains none.

use super::prelude::*;

pub(super) struct NetrcOptionalFlag;

impl FlagDefinition for NetrcOptionalFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "netrc-optional",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Take passwords from the URL or netrc",
            doc: "Like --netrc, but what the URL says takes precedence, and a missing file is not an error.",
            example: "haul --netrc-optional https://example.com/",
            see_also: "netrc netrc-file",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().netrc_optional = value.is_on();
        Ok(())
    }
}
