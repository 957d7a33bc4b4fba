//! `-M`, `--manual`.

use super::prelude::*;
use crate::args::Special;

pub(super) struct Manual;

impl Flag for Manual {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "manual",
            short: Some('M'),
            takes: Takes::Once,
            category: Category::General,
            important: false,
            help: "Show the whole manual",
            doc: "Prints the full documentation of every option.",
            example: "haul --manual",
            see_also: &["help"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.special = Some(Special::Manual);
        Ok(())
    }
}
