//! The option `--socks5-gssapi`: allows GSS-API with a SOCKS5 proxy.

use super::prelude::*;

pub(super) struct Socks5GssapiFlag;

impl FlagDefinition for Socks5GssapiFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5-gssapi",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Kerberos tickets for SOCKS5 proxies",
            doc: "Authenticates to SOCKS5 proxies by the Kerberos ticket of the user (GSS-API, RFC 1961), if the proxy \
                  chooses it. haul asks for no protection of the bytes by GSS-API; a proxy that demands it is refused \
                  (exit 97). Needs the Kerberos library, as --negotiate.",
            example: "haul --socks5-gssapi --socks5-hostname proxy.example:1080 https://example.com/",
            see_also: "socks5 socks5-gssapi-service negotiate",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().socks_gssapi = value.is_on();
        Ok(())
    }
}
