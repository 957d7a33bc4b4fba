//! `--proxy-ca-native`.

use super::prelude::*;

pub(super) struct ProxyCaNative;

impl Flag for ProxyCaNative {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-ca-native",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Trust the system's CA certificates for the proxy",
            doc: "Like --ca-native, for an https proxy.",
            example: "haul --proxy-ca-native -x https://proxy https://example.com/",
            see_also: &["ca-native"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args.proxy().tls.insecure);
        Ok(())
    }
}
