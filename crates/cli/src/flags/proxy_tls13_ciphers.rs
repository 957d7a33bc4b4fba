//! The option `--proxy-tls13-ciphers`: sets the cipher suites of TLS 1.3 for the proxy.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct ProxyTls13CiphersFlag;

impl FlagDefinition for ProxyTls13CiphersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-tls13-ciphers",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Offer these TLS 1.3 cipher suites (proxy)",
            doc: "Like --tls13-ciphers, for an https proxy.",
            example: "haul --proxy-tls13-ciphers TLS_AES_128_GCM_SHA256 -x https://proxy https://example.com/",
            see_also: "tls13-ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.tls13_ciphers = Some(split_names(value.content()?));
        Ok(())
    }
}
