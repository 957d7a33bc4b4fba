//! `--proxy-pinnedpubkey`.

use super::prelude::*;

pub(super) struct ProxyPinnedpubkey;

impl Flag for ProxyPinnedpubkey {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-pinnedpubkey",
            short: None,
            takes: Takes::Value("hashes"),
            category: Category::Proxy,
            important: false,
            help: "Accept this public key only (proxy)",
            doc: "Like --pinnedpubkey, for an https proxy.",
            example: "haul --proxy-pinnedpubkey key.pem -x https://proxy https://example.com/",
            see_also: &["pinnedpubkey"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.pins = Some(value.content()?.to_owned());
        Ok(())
    }
}
