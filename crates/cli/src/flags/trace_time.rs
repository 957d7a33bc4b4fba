//! `--trace-time`.

use super::prelude::*;

pub(super) struct TraceTime;

impl Flag for TraceTime {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "trace-time",
            short: None,
            takes: Takes::Switch,
            category: Category::Verbose,
            important: false,
            help: "Put the time before each line of a trace",
            doc: "Puts the time of day (UTC) before each line of -v or --trace.",
            example: "haul -v --trace-time https://example.com/",
            see_also: &["trace", "trace-ids"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.trace.time = value.on();
        Ok(())
    }
}
