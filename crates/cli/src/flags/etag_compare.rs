//! `--etag-compare`.

use super::prelude::*;

pub(super) struct EtagCompare;

impl Flag for EtagCompare {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "etag-compare",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Http,
            important: false,
            help: "Fetch only what has another entity tag",
            doc: "Sends the entity tag of FILE as If-None-Match: the server answers 304 without \
                  a body if it has nothing else. A file that is not there is an empty tag. Of one URL only.",
            example: "haul --etag-compare tag --etag-save tag -o page https://example.com/",
            see_also: &["etag-save", "time-cond"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().etag_compare = Some(value.path()?);
        Ok(())
    }
}
