//! `--trace-ascii`.

use super::prelude::*;
use crate::plan::TraceForm;

pub(super) struct TraceAscii;

impl Flag for TraceAscii {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "trace-ascii",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Verbose,
            important: false,
            help: "Write all traffic to a file as text",
            doc: "Like --trace, without the hexadecimal digits.",
            example: "haul --trace-ascii log https://example.com/",
            see_also: &["trace", "verbose"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let file = value.path()?;
        args.global.trace.form = TraceForm::Ascii;
        args.global.trace.file = Some(file);
        Ok(())
    }
}
