//! `-#`, `--progress-bar`.

use super::prelude::*;

pub(super) struct ProgressBar;

impl Flag for ProgressBar {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "progress-bar",
            short: Some('#'),
            takes: Takes::Switch,
            category: Category::Verbose,
            important: false,
            help: "Show progress as a bar",
            doc: "Draws a bar instead of figures, even if stderr is not a terminal. Only for a single body whose \
                  length is known.",
            example: "haul -# -o file https://example.com/file",
            see_also: &["progress-meter"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.progress_bar = value.on();
        Ok(())
    }
}
