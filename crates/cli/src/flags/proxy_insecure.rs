//! `--proxy-insecure`.

use super::prelude::*;

pub(super) struct ProxyInsecure;

impl Flag for ProxyInsecure {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-insecure",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Accept any certificate of the proxy",
            doc: "Like --insecure, for an https proxy: whoever controls the network can read and change everything \
                  that goes through the proxy unencrypted.",
            example: "haul --proxy-insecure -x https://proxy.example https://example.com/",
            see_also: &["insecure", "proxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.insecure = value.on();
        Ok(())
    }
}
