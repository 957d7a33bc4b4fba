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
            help: "Fetch only if the entity tag has changed",
            doc: "Sends the entity tag stored in FILE as If-None-Match; the server answers 304 without a body if the \
                  content is unchanged. A missing file counts as an empty tag. For one URL only.",
            example: "haul --etag-compare tag --etag-save tag -o page https://example.com/",
            see_also: &["etag-save", "time-cond"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().etag_compare = Some(value.path()?);
        Ok(())
    }
}
