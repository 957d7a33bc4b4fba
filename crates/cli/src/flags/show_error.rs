//! `-S`, `--show-error`.

use super::prelude::*;

pub(super) struct ShowError;

impl Flag for ShowError {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "show-error",
            short: Some('S'),
            takes: Takes::Switch,
            category: Category::Verbose,
            important: true,
            help: "Show errors even with -s",
            doc: "Shows the messages about failures that -s would hide.",
            example: "haul -sS https://example.com/",
            see_also: &["silent"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.show_error = value.on();
        Ok(())
    }
}
