//! `--skip-existing`.

use super::prelude::*;

pub(super) struct SkipExisting;

impl Flag for SkipExisting {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "skip-existing",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Fetch nothing whose file is there",
            doc: "Sends no request for a URL whose output file exists, and counts it as a success. Files \
                  are compared by name alone: haul gives a file its name only when it is whole. With -J a \
                  name that only the reply tells is known once the reply has begun; its body is not read.",
            example: "haul --skip-existing -O https://example.com/file.tar.gz",
            see_also: &["clobber", "continue-at", "remote-name"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().skip_existing = value.on();
        Ok(())
    }
}
