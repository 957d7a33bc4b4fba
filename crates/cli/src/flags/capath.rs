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
            help: "Trust the CA certificates in this directory",
            doc: "Trusts the CA certificates (PEM files) in DIR instead of the system's.",
            example: "haul --capath /etc/ssl/certs https://example.com/",
            see_also: &["proxy-capath"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.capath = Some(value.path()?);
        Ok(())
    }
}
