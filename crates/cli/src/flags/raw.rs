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
            help: "Do not undo transfer codings",
            doc: "Delivers chunked bodies as they arrived, including the chunk sizes.",
            example: "haul --raw http://example.com/",
            see_also: &["compressed"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().liberties.raw = value.on();
        Ok(())
    }
}
