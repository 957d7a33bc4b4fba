//! `--extract`.

use super::prelude::*;

pub(super) struct Extract;

impl Flag for Extract {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "extract",
            short: None,
            takes: Takes::Value("regex"),
            category: Category::Extract,
            important: true,
            help: "Print matches instead of bodies",
            doc: "Prints each match of REGEX (Rust syntax, over bytes), one a line: group 1 if there is one, else the \
                  whole match. Matches that span several reads are found. Belongs to the stage opened by the last \
                  --then.",
            example: "haul --extract 'href=\"([^\"]+)\"' https://example.com/",
            see_also: &["then", "unique", "sort"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().extract = Some(value.content()?.to_owned());
        Ok(())
    }
}
