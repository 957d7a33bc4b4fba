//! The option `--disallow-username-in-url`: refuses URLs that contain a user.

use super::prelude::*;

pub(super) struct DisallowUsernameInUrlFlag;

impl FlagDefinition for DisallowUsernameInUrlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "disallow-username-in-url",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Refuse URLs with a user name",
            doc: "Fails with 67 if a URL, or one that a redirect leads to, contains a user name.",
            example: "haul --disallow-username-in-url https://example.com/",
            see_also: "user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().no_user_in_url = value.is_on();
        Ok(())
    }
}
