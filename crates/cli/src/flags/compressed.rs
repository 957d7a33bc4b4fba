//! `--compressed`.

use super::prelude::*;

pub(super) struct Compressed;

impl Flag for Compressed {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "compressed",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Ask for a compressed reply",
            doc: "Asks for gzip, deflate, br or zstd and delivers the decoded body. On by default only for stages \
                  with --extract; --no-compressed turns it off there.",
            example: "haul --compressed https://example.com/",
            see_also: &["extract"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().compressed = Some(value.on());
        Ok(())
    }
}
