//! `--ssl-allow-beast`.

use super::prelude::*;

pub(super) struct SslAllowBeast;

impl Flag for SslAllowBeast {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl-allow-beast",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. The flaw that it works around is one of \
                  TLS 1.0, which haul does not speak.",
            example: "haul --ssl-allow-beast https://example.com/",
            see_also: &["tlsv1.2"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
