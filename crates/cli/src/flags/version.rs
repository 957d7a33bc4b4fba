//! `-V`, `--version`.

use super::prelude::*;
use crate::args::Special;

pub(super) struct Version;

impl Flag for Version {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "version",
            short: Some('V'),
            takes: Takes::Once,
            category: Category::General,
            important: true,
            help: "Show the version",
            doc: "Shows the version, protocols and features.",
            example: "haul --version",
            see_also: &["help"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.special = Some(Special::Version);
        Ok(())
    }
}
