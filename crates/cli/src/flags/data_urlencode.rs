//! `--data-urlencode`.

use super::prelude::*;
use crate::args::DataLow;

pub(super) struct DataUrlencode;

impl Flag for DataUrlencode {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "data-urlencode",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Post,
            important: false,
            help: "Send data in a POST, percent-encoded",
            doc: "Like --data, but encodes the content as forms are: \"content\", \"=content\", \"name=content\", \
                  \"@file\" or \"name@file\". The name is sent as given; a space becomes \"+\".",
            example: "haul --data-urlencode 'q=a b&c' https://example.com/search",
            see_also: &["data", "url-query", "get"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().data.push(DataLow::url_encode(value.bytes())?);
        Ok(())
    }
}
