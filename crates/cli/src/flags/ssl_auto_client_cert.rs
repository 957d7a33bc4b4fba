//! `--ssl-auto-client-cert`.

use super::prelude::*;

pub(super) struct SslAutoClientCert;

impl Flag for SslAutoClientCert {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl-auto-client-cert",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It concerns the TLS of Windows alone, by \
                  curl too.",
            example: "haul --ssl-auto-client-cert https://example.com/",
            see_also: &["crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
