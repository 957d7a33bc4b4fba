//! `-I`, `--head`.

use super::prelude::*;

pub(super) struct Head;

impl Flag for Head {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "head",
            short: Some('I'),
            takes: Takes::Switch,
            category: Category::Http,
            important: true,
            help: "Fetch headers only",
            doc: "Sends a HEAD request and prints the status line and header fields.",
            example: "haul -I https://example.com/",
            see_also: &["include", "request"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().head = value.on();
        Ok(())
    }
}
