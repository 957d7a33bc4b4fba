//! The option `--proxy-key-type`: sets the format of the private key for the proxy.

use super::cert_type::key_format;
use super::prelude::*;

pub(super) struct ProxyKeyTypeFlag;

impl FlagDefinition for ProxyKeyTypeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-key-type",
            short: None,
            syntax: FlagSyntax::Value("type"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Format of the key (proxy)",
            doc: "Format of --proxy-key: PEM, which is the default, or DER. ENG and PROV are not supported. haul \
                  finds out which of the two a file is in.",
            example: "haul --proxy-key-type DER --proxy-key me.der --proxy-cert me.pem -x https://proxy.example https://example.com/",
            see_also: "proxy-key proxy-cert-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.client.key_format = key_format(value)?;
        Ok(())
    }
}
