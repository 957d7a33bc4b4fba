//! `-g`, `--globoff`.

use super::prelude::*;

pub(super) struct Globoff;

impl Flag for Globoff {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "globoff",
            short: Some('g'),
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Take brackets and braces in URLs literally",
            doc: "Takes brackets and braces in URLs literally. Without it [1-3], [a-z:2] and {a,b} stand for several \
                  URLs.",
            example: "haul -g 'https://example.com/?list[0]=x'",
            see_also: &["url"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().globoff = value.on();
        Ok(())
    }
}
