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
            help: "Offer these cipher suites of TLS 1.3, of the proxy",
            doc: "As --tls13-ciphers, for TLS with an https proxy.",
            example: "haul --proxy-tls13-ciphers TLS_AES_128_GCM_SHA256 -x https://proxy https://example.com/",
            see_also: &["tls13-ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.tls13_ciphers = Some(names(value.content()?));
        Ok(())
    }
}
