//! `--sort`.

use super::prelude::*;

pub(super) struct Sort;

impl Flag for Sort {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "sort",
            short: None,
            takes: Takes::Switch,
            category: Category::Extract,
            important: false,
            help: "Print values sorted",
            doc: "Prints what --extract finds sorted by byte, at the end. What does not fit in \
                  --max-memory waits on disk. Belongs to the stage that the last --then opened.",
            example: "haul --extract '[0-9]+' --sort https://example.com/",
            see_also: &["extract", "unique"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().sort = value.on();
        Ok(())
    }
}
