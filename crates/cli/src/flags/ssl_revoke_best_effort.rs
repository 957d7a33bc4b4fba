//! `--ssl-revoke-best-effort`.

use super::prelude::*;

pub(super) struct SslRevokeBestEffort;

impl Flag for SslRevokeBestEffort {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl-revoke-best-effort",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It concerns the TLS of Windows alone, by \
                  curl too.",
            example: "haul --ssl-revoke-best-effort https://example.com/",
            see_also: &["crlfile"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
