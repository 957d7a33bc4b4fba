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
            doc: "Asks for gzip, deflate, br or zstd and hands out the decoded body. Stages with \
                  --extract ask for it unless --no-compressed is given; others do not unless this is.",
            example: "haul --compressed https://example.com/",
            see_also: &["extract"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().compressed = Some(value.on());
        Ok(())
    }
}
