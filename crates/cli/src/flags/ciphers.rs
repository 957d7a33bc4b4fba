//! `--ciphers`.

use super::prelude::*;
use crate::value::names;

pub(super) struct Ciphers;

impl Flag for Ciphers {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ciphers",
            short: None,
            takes: Takes::Value("list"),
            category: Category::Tls,
            important: false,
            help: "Offer these cipher suites",
            doc: "Offers these TLS 1.2 cipher suites, by their OpenSSL names, separated by colons. Unknown names are \
                  skipped; if none is left, haul exits with 59.",
            example: "haul --ciphers ECDHE-RSA-AES128-GCM-SHA256 https://example.com/",
            see_also: &["proxy-ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.ciphers = Some(names(value.content()?));
        Ok(())
    }
}
