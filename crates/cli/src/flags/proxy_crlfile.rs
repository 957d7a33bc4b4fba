//! `--proxy-crlfile`.

use super::prelude::*;

pub(super) struct ProxyCrlfile;

impl Flag for ProxyCrlfile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-crlfile",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Proxy,
            important: false,
            help: "Refuse certificates revoked in this list (proxy)",
            doc: "Like --crlfile, for an https proxy.",
            example: "haul --proxy-crlfile revoked.pem -x https://proxy https://example.com/",
            see_also: &["crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.crlfile = Some(value.path()?);
        Ok(())
    }
}
