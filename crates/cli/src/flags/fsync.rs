//! `--fsync`.

use super::prelude::*;

pub(super) struct Fsync;

impl Flag for Fsync {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "fsync",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Wait until files are on the disk",
            doc: "Makes the system write each file and its directory entry to the disk before the transfer \
                  counts as done, so that it also outlives a power failure. Off by default: a kill of haul \
                  or of any program loses nothing without it, and it can take longer than the transfer.",
            example: "haul --fsync -o file https://example.com/file",
            see_also: &["output", "create-file-mode"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().fsync = value.on();
        Ok(())
    }
}
