//! `--etag-save`.

use super::prelude::*;

pub(super) struct EtagSave;

impl Flag for EtagSave {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "etag-save",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Http,
            important: false,
            help: "Save the entity tag to a file",
            doc: "Writes the ETag of the reply to FILE, for --etag-compare in a later run; \"-\" is standard output. \
                  For one URL only.",
            example: "haul --etag-save tag -o page https://example.com/",
            see_also: &["etag-compare"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().etag_save = Some(value.path()?);
        Ok(())
    }
}
