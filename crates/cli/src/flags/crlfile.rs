//! `--crlfile`.

use super::prelude::*;

pub(super) struct Crlfile;

impl Flag for Crlfile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "crlfile",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Tls,
            important: false,
            help: "Refuse certificates revoked in this list",
            doc: "Refuses certificates that a revocation list in FILE (PEM) names.",
            example: "haul --crlfile revoked.pem https://example.com/",
            see_also: &["proxy-crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.crlfile = Some(value.path()?);
        Ok(())
    }
}
