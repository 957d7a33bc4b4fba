//! `--trace-ids`.

use super::prelude::*;

pub(super) struct TraceIds;

impl Flag for TraceIds {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "trace-ids",
            short: None,
            takes: Takes::Switch,
            category: Category::Verbose,
            important: false,
            help: "Number the lines of a trace",
            doc: "Puts the numbers of transfer and connection before each line of -v or --trace. They are always \
                  [0-0], since transfers with -v run one after the other.",
            example: "haul -v --trace-ids https://example.com/",
            see_also: &["trace", "trace-time"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.trace.ids = value.on();
        Ok(())
    }
}
