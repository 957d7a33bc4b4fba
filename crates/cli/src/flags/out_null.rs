//! `--out-null`.

use super::prelude::*;
use crate::plan;

pub(super) struct OutNull;

impl Flag for OutNull {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "out-null",
            short: None,
            takes: Takes::Once,
            category: Category::Output,
            important: false,
            help: "Discard a body",
            doc: "Discards the body of the next URL that has no output yet, without writing any file.",
            example: "haul --out-null https://example.com/",
            see_also: &["output"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.push_output(plan::Output::Null);
        Ok(())
    }
}
