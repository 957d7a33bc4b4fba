//! `-3`, `--sslv3`.

use super::prelude::*;

pub(super) struct Sslv3;

impl Flag for Sslv3 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "sslv3",
            short: Some('3'),
            takes: Takes::Once,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is ignored by curl too, since SSL 3 is \
                  broken.",
            example: "haul --sslv3 https://example.com/",
            see_also: &["tlsv1.2"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
