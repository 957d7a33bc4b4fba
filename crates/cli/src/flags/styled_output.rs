//! `--styled-output`.

use super::prelude::*;

pub(super) struct StyledOutput;

impl Flag for StyledOutput {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "styled-output",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Style headers on a terminal",
            doc: "Accepted for compatibility with curl. haul prints header fields as they arrived.",
            example: "haul --no-styled-output -I https://example.com/",
            see_also: &["include"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
