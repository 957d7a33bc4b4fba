//! `--post303`.

use super::prelude::*;

pub(super) struct Post303;

impl Flag for Post303 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "post303",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Keep a POST a POST after a 303",
            doc: "Sends a POST again as a POST, with its body, after a 303. By default it becomes a GET, as in \
                  browsers (RFC 9110 section 15.4).",
            example: "haul --post303 -d a=b https://example.com/form",
            see_also: &["location", "request"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.post303 = value.on();
        Ok(())
    }
}
