//! `-v`, `--verbose`.

use super::prelude::*;
use crate::plan::TraceForm;

pub(super) struct Verbose;

impl Flag for Verbose {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "verbose",
            short: Some('v'),
            takes: Takes::Switch,
            category: Category::Verbose,
            important: true,
            help: "Show requests and replies",
            doc: "Shows the heads of requests and replies on stderr, without the values of credentials \
                  and cookies.",
            example: "haul -v https://example.com/",
            see_also: &["stats", "include"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.trace.form = if value.on() { TraceForm::Lines } else { TraceForm::Off };
        args.global.trace.file = None;
        Ok(())
    }
}
