//! `--output-dir`.

use super::prelude::*;

pub(super) struct OutputDir;

impl Flag for OutputDir {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "output-dir",
            short: None,
            takes: Takes::Value("dir"),
            category: Category::Output,
            important: false,
            help: "Directory of output files",
            doc: "Puts the files of -o and -O into DIR.",
            example: "haul --output-dir pages -O https://example.com/a.html",
            see_also: &["create-dirs", "output", "remote-name"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().output_dir = Some(value.path()?);
        Ok(())
    }
}
