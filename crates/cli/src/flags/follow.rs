//! `--follow`.

use super::prelude::*;

pub(super) struct Follow;

impl Flag for Follow {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "follow",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Follow redirects, changing the method if told to",
            doc: "Follows redirects; a method given by --request is kept only where the status calls for it.",
            example: "haul --follow -X POST -d x https://example.com/",
            see_also: &["location", "request"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        if args.global.persona.is_curl() && args.transfer().redirect.follow && !args.request().follow {
            args.warn("--follow overrides --location");
        }
        args.transfer().redirect.follow = value.on();
        args.request().follow = value.on();
        Ok(())
    }
}
