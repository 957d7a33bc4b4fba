//! `--fail-early`.

use super::prelude::*;

pub(super) struct FailEarly;

impl Flag for FailEarly {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "fail-early",
            short: None,
            takes: Takes::Switch,
            category: Category::Limits,
            important: false,
            help: "Stop at the first failure",
            doc: "Ends the run at the first transfer that fails, after its retries, instead of going on with the \
                  others.",
            example: "haul --fail-early https://example.com/a https://example.com/b",
            see_also: &["fail", "retry"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.fail_early = value.on();
        Ok(())
    }
}
