//! `--max-redirs`.

use super::prelude::*;

pub(super) struct MaxRedirs;

impl Flag for MaxRedirs {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "max-redirs",
            short: None,
            takes: Takes::Value("num"),
            category: Category::Http,
            important: false,
            help: "Maximum number of redirects",
            doc: "Fails with 47 at the first redirect beyond NUM. Default 50; -1 means no limit.",
            example: "haul --max-redirs 3 https://example.com/",
            see_also: &["location"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.max = match value.bytes() {
            b"-1" => None,
            _ => Some(value.number()?),
        };
        Ok(())
    }
}
