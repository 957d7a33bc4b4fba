//! `-s`, `--silent`.

use super::prelude::*;

pub(super) struct Silent;

impl Flag for Silent {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "silent",
            short: Some('s'),
            takes: Takes::Switch,
            category: Category::Verbose,
            important: true,
            help: "Show neither progress nor messages",
            doc: "Prints nothing but the output. -S brings messages about failures back.",
            example: "haul -s https://example.com/",
            see_also: &["show-error", "progress-meter"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.silent = value.on();
        Ok(())
    }
}
