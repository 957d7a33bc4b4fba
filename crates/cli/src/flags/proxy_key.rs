//! The option `--proxy-key`: names the file of the private key for the proxy's client certificate.

use super::prelude::*;

pub(super) struct ProxyKeyFlag;

impl FlagDefinition for ProxyKeyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-key",
            short: None,
            syntax: FlagSyntax::Value("key"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Key of the client certificate for the proxy",
            doc: "The private key for --proxy-cert, if it is not in the same file.",
            example: "haul --proxy-cert me.pem --proxy-key me.key -x https://proxy.example https://example.com/",
            see_also: "proxy-cert proxy-pass proxy-key-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.client.key = Some(value.path()?);
        Ok(())
    }
}
