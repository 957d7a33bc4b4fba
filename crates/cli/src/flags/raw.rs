//! `--raw`.

use super::prelude::*;

pub(super) struct Raw;

impl Flag for Raw {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "raw",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Leave transfer codings as they are",
            doc: "Hands chunked bodies out as they came, with the sizes of the chunks.",
            example: "haul --raw http://example.com/",
            see_also: &["compressed"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().liberties.raw = value.on();
        Ok(())
    }
}
