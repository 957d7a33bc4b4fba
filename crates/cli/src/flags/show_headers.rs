//! `--show-headers`.

use super::prelude::*;

pub(super) struct ShowHeaders;

impl Flag for ShowHeaders {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "show-headers",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "The same as --include",
            doc: "The newer name of --include.",
            example: "haul --show-headers https://example.com/",
            see_also: &["include"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().include = value.on();
        Ok(())
    }
}
