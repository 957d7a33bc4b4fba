//! `-i`, `--include`.

use super::prelude::*;

pub(super) struct Include;

impl Flag for Include {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "include",
            short: Some('i'),
            takes: Takes::Switch,
            category: Category::Output,
            important: true,
            help: "Print reply headers before the body",
            doc: "Prints the status line and header fields of each reply, then the body.",
            example: "haul -i https://example.com/",
            see_also: &["head", "dump-header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().include = value.on();
        Ok(())
    }
}
