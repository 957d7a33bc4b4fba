//! `-G`, `--get`.

use super::prelude::*;

pub(super) struct Get;

impl Flag for Get {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "get",
            short: Some('G'),
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Send data in the URL of a GET",
            doc: "What --data and its like give goes behind the query of each URL, and the request is a \
                  GET, or a HEAD with -I. Bytes that no URL may hold are percent-encoded.",
            example: "haul -G -d q=haul https://example.com/search",
            see_also: &["data", "data-urlencode", "url-query"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().get = value.on();
        Ok(())
    }
}
