//! `--unordered`.

use super::prelude::*;

pub(super) struct Unordered;

impl Flag for Unordered {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "unordered",
            short: None,
            takes: Takes::Switch,
            category: Category::Parallel,
            important: false,
            help: "Print bodies as they complete",
            doc: "Prints bodies in the order in which they complete, each whole, instead of in input order.",
            example: "haul --unordered --input-file list.txt",
            see_also: &["parallel", "max-memory"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.unordered = value.on();
        Ok(())
    }
}
