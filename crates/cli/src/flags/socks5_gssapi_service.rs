//! The option `--socks5-gssapi-service`: sets the service in the SOCKS5 proxy's Kerberos name.

use super::prelude::*;

pub(super) struct Socks5GssapiServiceFlag;

impl FlagDefinition for Socks5GssapiServiceFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5-gssapi-service",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Kerberos service of the SOCKS5 proxy",
            doc: "Names the service in the Kerberos name of the proxy for --socks5-gssapi, in place of rcmd. It is the same \
                  option as --proxy-service-name.",
            example: "haul --socks5-gssapi --socks5-gssapi-service socks --socks5 proxy.example:1080 https://example.com/",
            see_also: "socks5-gssapi proxy-service-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().negotiate.service = Some(value.content()?.to_owned());
        Ok(())
    }
}
