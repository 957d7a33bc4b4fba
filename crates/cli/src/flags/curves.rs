//! `--curves`.

use super::prelude::*;
use crate::value::names;

pub(super) struct Curves;

impl Flag for Curves {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "curves",
            short: None,
            takes: Takes::Value("list"),
            category: Category::Tls,
            important: false,
            help: "Use these groups for the key exchange",
            doc: "Offers these key exchange groups, separated by colons, preferred first: X25519, P-256 (prime256v1), \
                  P-384 (secp384r1), X25519MLKEM768.",
            example: "haul --curves X25519:P-256 https://example.com/",
            see_also: &["ciphers"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.curves = Some(names(value.content()?));
        Ok(())
    }
}
