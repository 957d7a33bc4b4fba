//! `--clobber`, `--no-clobber`.

use super::prelude::*;

pub(super) struct Clobber;

impl Flag for Clobber {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "clobber",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Replace files that exist",
            doc: "Files that exist are replaced, which is the default but for names that the server gives \
                  by -J. --no-clobber writes beside them, to the first of FILE.1 to FILE.100 that is not \
                  there, and fails with 23 if all are.",
            example: "haul --no-clobber -O https://example.com/file.tar.gz",
            see_also: &["skip-existing", "remote-header-name", "output"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().clobber = Some(value.on());
        Ok(())
    }
}
