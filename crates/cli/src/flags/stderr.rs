//! `--stderr`.

use super::prelude::*;

pub(super) struct Stderr;

impl Flag for Stderr {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "stderr",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Verbose,
            important: false,
            help: "Write messages to a file",
            doc: "Writes what would go to stderr to FILE instead; \"-\" is standard output.",
            example: "haul --stderr log https://example.com/",
            see_also: &["show-error", "silent"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.stderr = Some(value.path()?);
        Ok(())
    }
}
