//! `--key-type`.

use super::cert_type::format;
use super::prelude::*;

pub(super) struct KeyType;

impl Flag for KeyType {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "key-type",
            short: None,
            takes: Takes::Value("type"),
            category: Category::Tls,
            important: false,
            help: "Format of the key",
            doc: "Format of --key: PEM, which is the default, or DER. ENG and PROV are not supported. haul finds out \
                  which of the two a file is in.",
            example: "haul --key-type DER --key me.der --cert me.pem https://example.com/",
            see_also: &["key", "cert-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.client.key_format = format(value)?;
        Ok(())
    }
}
