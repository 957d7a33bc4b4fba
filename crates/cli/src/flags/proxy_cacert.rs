//! `--proxy-cacert`.

use super::prelude::*;

pub(super) struct ProxyCacert;

impl Flag for ProxyCacert {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-cacert",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Proxy,
            important: false,
            help: "Trust these CA certificates for the proxy",
            doc: "Like --cacert, for an https proxy.",
            example: "haul --proxy-cacert ca.pem -x https://proxy.example https://example.com/",
            see_also: &["cacert", "proxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.cacert = Some(value.path()?);
        Ok(())
    }
}
