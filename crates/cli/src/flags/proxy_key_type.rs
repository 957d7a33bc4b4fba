//! `--proxy-key-type`.

use super::cert_type::format;
use super::prelude::*;

pub(super) struct ProxyKeyType;

impl Flag for ProxyKeyType {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-key-type",
            short: None,
            takes: Takes::Value("type"),
            category: Category::Proxy,
            important: false,
            help: "Format of the key (proxy)",
            doc: "Format of --proxy-key: PEM, which is the default, or DER. ENG and PROV are not supported. haul \
                  finds out which of the two a file is in.",
            example: "haul --proxy-key-type DER --proxy-key me.der --proxy-cert me.pem -x https://proxy.example https://example.com/",
            see_also: &["proxy-key", "proxy-cert-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.client.key_format = format(value)?;
        Ok(())
    }
}
