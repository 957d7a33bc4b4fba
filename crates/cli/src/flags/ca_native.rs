//! The option `--ca-native`: trusts the CA certificates of the system. On by default.

use super::prelude::*;

pub(super) struct CaNativeFlag;

impl FlagDefinition for CaNativeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ca-native",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Tls,
            important: false,
            help: "Trust the system's CA certificates (default)",
            doc: "Trusts the CA certificates of the system, which is the default.",
            example: "haul --ca-native https://example.com/",
            see_also: "proxy-ca-native",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // curl with OpenSSL trusts them only where this is on.
        if !value.is_on() && !args.global.persona.is_curl() {
            let text = "the system's certificates are trusted unless --cacert or --capath takes their place";
            return Err(UsageErrorReason::bad_use(text));
        }
        Ok(())
    }
}
