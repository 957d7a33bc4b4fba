//! `--max-filesize`.

use super::prelude::*;

pub(super) struct MaxFilesize;

impl Flag for MaxFilesize {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "max-filesize",
            short: None,
            takes: Takes::Value("bytes"),
            category: Category::Limits,
            important: false,
            help: "Maximum size of a body",
            doc: "Refuses a larger body, as announced, as received or as decoded, with exit code 63. K, M and G \
                  (powers of 1024) may follow the number. 0, the default, means no limit.",
            example: "haul --max-filesize 10M https://example.com/",
            see_also: &["max-memory"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let limit = value.size()?;
        args.transfer().max_filesize = (limit > 0).then_some(limit);
        Ok(())
    }
}
