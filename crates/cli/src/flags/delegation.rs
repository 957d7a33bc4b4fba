//! The option `--delegation`: says whether the server gets the user's Kerberos ticket.

use haul::state::auth::Delegation;

use super::prelude::*;

pub(super) struct DelegationFlag;

impl FlagDefinition for DelegationFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "delegation",
            short: None,
            syntax: FlagSyntax::Value("level"),
            category: HelpCategory::Auth,
            important: false,
            help: "Kerberos delegation for --negotiate",
            doc: "Says whether --negotiate and --proxy-negotiate hand the ticket of the user on to the server, which may then \
                  act as the user elsewhere: \"none\" (the default), \"policy\" (only if the Kerberos realm marks the \
                  server as trusted for it), or \"always\".",
            example: "haul --negotiate --delegation policy https://intranet.example/",
            see_also: "negotiate proxy-negotiate",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let delegation = match value.content()?.to_ascii_lowercase().as_str() {
            "none" => Delegation::None,
            "policy" => Delegation::Policy,
            "always" => Delegation::Always,
            _ => return Err(UsageErrorReason::bad_use("expected none, policy or always")),
        };
        args.request().negotiate.delegation = delegation;
        args.proxy().negotiate.delegation = delegation;
        Ok(())
    }
}
