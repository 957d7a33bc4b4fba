//! `-:`, `--next`.

use super::prelude::*;

pub(super) struct Next;

impl Flag for Next {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "next",
            short: Some(':'),
            takes: Takes::Once,
            category: Category::General,
            important: false,
            help: "Start a new group of URLs and options",
            doc: "Starts a new group of URLs, with options of its own, which runs after the groups before it. Only \
                  options of the whole run (-s, -S, -v, -Z, --stats, --threads and the like) carry over.",
            example: "haul -I https://example.com/ --next -d x=1 https://example.com/form",
            see_also: &["config"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.next_group()
    }
}
