//! `--proxy-ciphers`.

use super::prelude::*;
use crate::value::names;

pub(super) struct ProxyCiphers;

impl Flag for ProxyCiphers {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-ciphers",
            short: None,
            takes: Takes::Value("list"),
            category: Category::Proxy,
            important: false,
            help: "Offer these cipher suites (proxy)",
            doc: "Like --ciphers, for an https proxy.",
            example: "haul --proxy-ciphers ECDHE-RSA-AES128-GCM-SHA256 -x https://proxy https://example.com/",
            see_also: &["ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.ciphers = Some(names(value.content()?));
        Ok(())
    }
}
