//! The option `--oauth2-bearer`: sends a bearer token (RFC 6750).

use super::prelude::*;
use crate::plan::Secret;
use haul_policy::auth::bearer_authorization;

pub(super) struct Oauth2BearerFlag;

impl FlagDefinition for Oauth2BearerFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "oauth2-bearer",
            short: None,
            syntax: FlagSyntax::Value("token"),
            category: HelpCategory::Auth,
            important: false,
            help: "Send a bearer token",
            doc: "Sends \"Authorization: Bearer TOKEN\" to the origin of the URL only (RFC 6750). Replaces -u. With \
                  --anyauth, --basic or --digest the token is sent only when the server asks for one.",
            example: "haul --oauth2-bearer TOKEN https://example.com/",
            see_also: "user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let token = value.content()?.as_bytes();
        bearer_authorization(token).map_err(|_| UsageErrorReason::bad_use("a token is visible ASCII"))?;
        args.request().bearer = Some(Secret::new(token));
        Ok(())
    }
}
