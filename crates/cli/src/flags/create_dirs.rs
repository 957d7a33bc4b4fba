//! `--create-dirs`.

use super::prelude::*;

pub(super) struct CreateDirs;

impl Flag for CreateDirs {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "create-dirs",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Create missing directories for output files",
            doc: "Creates missing directories for the files that -o or --output-dir names.",
            example: "haul --create-dirs -o 'pages/#1/index.html' 'http://example.com/[1-3]'",
            see_also: &["output", "output-dir"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().create_dirs = value.on();
        Ok(())
    }
}
