//! The option `--proxy-ca-native`: trusts the CA certificates of the system for the proxy. On by
//! default.

use super::prelude::*;

pub(super) struct ProxyCaNativeFlag;

impl FlagDefinition for ProxyCaNativeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-ca-native",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Trust the system's CA certificates for the proxy",
            doc: "Like --ca-native, for an https proxy.",
            example: "haul --proxy-ca-native -x https://proxy https://example.com/",
            see_also: "ca-native",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // curl with OpenSSL trusts them only where this is on.
        if !value.is_on() && !args.global.persona.is_curl() {
            let text =
                "the system's certificates are trusted unless --proxy-cacert or --proxy-capath takes their place";
            return Err(UsageErrorReason::bad_use(text));
        }
        Ok(())
    }
}
