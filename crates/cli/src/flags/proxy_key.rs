//! `--proxy-key`.

use super::prelude::*;

pub(super) struct ProxyKey;

impl Flag for ProxyKey {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-key",
            short: None,
            takes: Takes::Value("key"),
            category: Category::Proxy,
            important: false,
            help: "Key of the client certificate for the proxy",
            doc: "The private key for --proxy-cert, if it is not in the same file.",
            example: "haul --proxy-cert me.pem --proxy-key me.key -x https://proxy.example https://example.com/",
            see_also: &["proxy-cert", "proxy-pass", "proxy-key-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.client.key = Some(value.path()?);
        Ok(())
    }
}
