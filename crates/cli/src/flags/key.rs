//! `--key`.

use super::prelude::*;

pub(super) struct Key;

impl Flag for Key {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "key",
            short: None,
            takes: Takes::Value("key"),
            category: Category::Tls,
            important: false,
            help: "Key of the client certificate",
            doc: "The private key for --cert, if it is not in the same file.",
            example: "haul --cert me.pem --key me.key https://example.com/",
            see_also: &["cert", "pass", "key-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.client.key = Some(value.path()?);
        Ok(())
    }
}
