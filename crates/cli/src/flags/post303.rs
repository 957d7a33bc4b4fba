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
            doc: "A POST that a 303 redirects is sent again as a POST with its body. By default it becomes \
                  a GET, as browsers have it (RFC 9110 section 15.4).",
            example: "haul --post303 -d a=b https://example.com/form",
            see_also: &["location", "request"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.post303 = value.on();
        Ok(())
    }
}
