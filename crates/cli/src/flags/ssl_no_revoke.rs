//! `--ssl-no-revoke`.

use super::prelude::*;

pub(super) struct SslNoRevoke;

impl Flag for SslNoRevoke {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl-no-revoke",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It concerns the TLS of Windows alone, by \
                  curl too.",
            example: "haul --ssl-no-revoke https://example.com/",
            see_also: &["crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
