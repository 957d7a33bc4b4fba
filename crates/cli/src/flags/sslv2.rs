//! `-2`, `--sslv2`.

use super::prelude::*;

pub(super) struct Sslv2;

impl Flag for Sslv2 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "sslv2",
            short: Some('2'),
            takes: Takes::Once,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is ignored by curl too, since SSL 2 is \
                  broken.",
            example: "haul --sslv2 https://example.com/",
            see_also: &["tlsv1.2"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
