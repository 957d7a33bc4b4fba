//! `--capath`.

use super::prelude::*;

pub(super) struct Capath;

impl Flag for Capath {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "capath",
            short: None,
            takes: Takes::Value("dir"),
            category: Category::Tls,
            important: false,
            help: "Trust the certificates of a directory",
            doc: "Trusts the CA certificates in DIR, PEM files, instead of the system's.",
            example: "haul --capath /etc/ssl/certs https://example.com/",
            see_also: &["proxy-capath"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.capath = Some(value.path()?);
        Ok(())
    }
}
