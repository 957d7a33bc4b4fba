//! The option `--alpn`: negotiates the HTTP version in the TLS handshake. On by default.

use super::prelude::*;

pub(super) struct AlpnFlag;

impl FlagDefinition for AlpnFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "alpn",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Tls,
            important: false,
            help: "Negotiate the HTTP version in TLS",
            doc: "Offers HTTP/2 and HTTP/1.1 in the TLS handshake, which is the default. --no-alpn offers nothing, so \
                  HTTP/1.1 is used.",
            example: "haul --no-alpn https://example.com/",
            see_also: "http1.1",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.alpn = value.is_on();
        Ok(())
    }
}
