//! `--proxy-tls13-ciphers`.

use super::prelude::*;
use crate::value::names;

pub(super) struct ProxyTls13Ciphers;

impl Flag for ProxyTls13Ciphers {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-tls13-ciphers",
            short: None,
            takes: Takes::Value("list"),
            category: Category::Proxy,
            important: false,
            help: "Offer these TLS 1.3 cipher suites (proxy)",
            doc: "Like --tls13-ciphers, for an https proxy.",
            example: "haul --proxy-tls13-ciphers TLS_AES_128_GCM_SHA256 -x https://proxy https://example.com/",
            see_also: &["tls13-ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.tls13_ciphers = Some(names(value.content()?));
        Ok(())
    }
}
