//! The option `--proxy-ciphers`: sets the cipher suites of TLS 1.2 for the proxy.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct ProxyCiphersFlag;

impl FlagDefinition for ProxyCiphersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-ciphers",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Offer these cipher suites (proxy)",
            doc: "Like --ciphers, for an https proxy.",
            example: "haul --proxy-ciphers ECDHE-RSA-AES128-GCM-SHA256 -x https://proxy https://example.com/",
            see_also: "ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.tls12_ciphers = Some(split_names(value.content()?));
        Ok(())
    }
}
