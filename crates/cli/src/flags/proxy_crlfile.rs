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
            help: "Refuse what a list revokes, of the proxy",
            doc: "As --crlfile, for TLS with an https proxy.",
            example: "haul --proxy-crlfile revoked.pem -x https://proxy https://example.com/",
            see_also: &["crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.crlfile = Some(value.path()?);
        Ok(())
    }
}
