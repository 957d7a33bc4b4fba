//! The option `--user` (`-u`): sends this user and password.

use super::header_value_parser::refuse_controls;
use super::prelude::*;
use crate::parsed_args::ParsedUserOption;
use haul_policy::auth::Credentials;

pub(super) struct UserFlag;

impl FlagDefinition for UserFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "user",
            short: Some('u'),
            syntax: FlagSyntax::Value("user[:password]"),
            category: HelpCategory::Auth,
            important: true,
            help: "Send user and password",
            doc: "Sends user and password, by Basic or by what --digest or --anyauth allow, to the origin of the URL \
                  only, not along a redirect to another. Without a colon the password is asked for on the terminal. \
                  The value is blanked in the process list, but other users of the machine may see it before: a \
                  config file (-K) or netrc hides it.",
            example: "haul -u me:secret https://example.com/",
            see_also: "basic digest anyauth netrc oauth2-bearer config",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().user = Some(parse_user_option(value)?);
        Ok(())
    }
}

/// Parses `USER` or `USER:PASSWORD`, the value of `-u` or `-U`.
pub(super) fn parse_user_option(value: FlagValue<'_>) -> Result<ParsedUserOption, UsageErrorReason> {
    refuse_controls(value.bytes())?;
    let (user, password) = Credentials::split_user_and_password(value.bytes());
    Ok(ParsedUserOption { user: user.to_vec(), password: password.map(<[u8]>::to_vec) })
}
