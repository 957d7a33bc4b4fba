//! `-B`, `--use-ascii`.

use super::prelude::*;

pub(super) struct UseAscii;

impl Flag for UseAscii {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "use-ascii",
            short: Some('B'),
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about transfers by FTP.",
            example: "haul --use-ascii https://example.com/",
            see_also: &["output"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
