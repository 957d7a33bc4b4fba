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
            doc: "Appends the data of --data and its variants to the query of each URL and sends a GET, or a HEAD \
                  with -I. Bytes that are not allowed in a URL are percent-encoded.",
            example: "haul -G -d q=haul https://example.com/search",
            see_also: &["data", "data-urlencode", "url-query"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().get = value.on();
        Ok(())
    }
}
