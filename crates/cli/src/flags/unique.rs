//! `--unique`.

use super::prelude::*;

pub(super) struct Unique;

impl Flag for Unique {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "unique",
            short: None,
            takes: Takes::Switch,
            category: Category::Extract,
            important: false,
            help: "Print each value once",
            doc: "Prints a value that --extract finds only the first time. What does not fit in \
                  --max-memory waits on disk. A value that feeds a --then passes once in any case. \
                  Belongs to the stage that the last --then opened.",
            example: "haul --extract '[0-9]+' --unique https://example.com/",
            see_also: &["extract", "sort"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().unique = value.on();
        Ok(())
    }
}
