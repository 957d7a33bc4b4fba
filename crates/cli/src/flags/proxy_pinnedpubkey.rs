//! The option `--proxy-pinnedpubkey`: accepts only proxies with one of these public keys.

use super::prelude::*;

pub(super) struct ProxyPinnedpubkeyFlag;

impl FlagDefinition for ProxyPinnedpubkeyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-pinnedpubkey",
            short: None,
            syntax: FlagSyntax::Value("hashes"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Accept this public key only (proxy)",
            doc: "Like --pinnedpubkey, for an https proxy.",
            example: "haul --proxy-pinnedpubkey key.pem -x https://proxy https://example.com/",
            see_also: "pinnedpubkey",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.pins = Some(value.content()?.to_owned());
        Ok(())
    }
}
