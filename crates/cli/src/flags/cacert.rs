//! `--cacert`.

use super::prelude::*;

pub(super) struct Cacert;

impl Flag for Cacert {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "cacert",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Tls,
            important: false,
            help: "Trust the CA certificates in this file",
            doc: "Verifies servers against the PEM certificates in FILE instead of the system's CA certificates. A \
                  later --then inherits it.",
            example: "haul --cacert ca.pem https://example.com/",
            see_also: &["insecure"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.cacert = Some(value.path()?);
        Ok(())
    }
}
