//! The option `--negotiate`: allows Negotiate authentication (SPNEGO, Kerberos).

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct NegotiateFlag;

impl FlagDefinition for NegotiateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "negotiate",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Allow Negotiate authentication (Kerberos)",
            doc: "Proves the Kerberos ticket of the user to the origin of the URL (RFC 4559); get one with kinit. The first \
                  request has the proof, and a server that answers with a proof of its own is checked. No user is \
                  needed; curl's \"-u :\" is accepted. The library libgssapi_krb5.so.2 is opened at run time \
                  (Debian: libgssapi-krb5-2); a static haul cannot do so. Connections are not shared with requests \
                  that do without it.",
            example: "haul --negotiate https://intranet.example/",
            see_also: "anyauth service-name delegation proxy-negotiate",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().allowed.get_or_insert(NONE).negotiate = value.is_on();
        Ok(())
    }
}
