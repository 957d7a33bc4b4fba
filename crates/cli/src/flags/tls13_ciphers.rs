//! `--tls13-ciphers`.

use super::prelude::*;
use crate::value::names;

pub(super) struct Tls13Ciphers;

impl Flag for Tls13Ciphers {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tls13-ciphers",
            short: None,
            takes: Takes::Value("list"),
            category: Category::Tls,
            important: false,
            help: "Offer these cipher suites of TLS 1.3",
            doc: "Offers these TLS 1.3 cipher suites, separated by colons.",
            example: "haul --tls13-ciphers TLS_AES_128_GCM_SHA256 https://example.com/",
            see_also: &["proxy-tls13-ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.tls13_ciphers = Some(names(value.content()?));
        Ok(())
    }
}
