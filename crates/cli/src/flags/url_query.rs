//! `--url-query`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct UrlQuery;

impl Flag for UrlQuery {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "url-query",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Http,
            important: false,
            help: "Add to the query of the URL",
            doc: "Appends DATA to the query of each URL, in the five forms of --data-urlencode and encoded the same \
                  way; \"+text\" is taken as given. URLs of redirects are not changed. May be repeated.",
            example: "haul --url-query 'q=a b' https://example.com/search",
            see_also: &["get", "data-urlencode"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = value.bytes();
        let data = match text.strip_prefix(b"+") {
            Some(raw) => DataLow { kind: DataKind::Raw, name: None, text: TextOrFile::Text(raw.into()) },
            None => DataLow::url_encode(text)?,
        };
        args.request().query.push(data);
        Ok(())
    }
}
