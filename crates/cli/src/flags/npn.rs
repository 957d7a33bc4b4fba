//! `--npn`.

use super::prelude::*;

pub(super) struct Npn;

impl Flag for Npn {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "npn",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. NPN is no more; ALPN has taken its place.",
            example: "haul --npn https://example.com/",
            see_also: &["alpn"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
