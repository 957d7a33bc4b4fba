//! `--proxy-capath`.

use super::prelude::*;

pub(super) struct ProxyCapath;

impl Flag for ProxyCapath {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-capath",
            short: None,
            takes: Takes::Value("dir"),
            category: Category::Proxy,
            important: false,
            help: "Trust the CA certificates in this directory (proxy)",
            doc: "Like --capath, for an https proxy.",
            example: "haul --proxy-capath /etc/ssl/certs -x https://proxy https://example.com/",
            see_also: &["capath"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.capath = Some(value.path()?);
        Ok(())
    }
}
