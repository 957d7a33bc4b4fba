//! `--retry-all-errors`.

use super::prelude::*;

pub(super) struct RetryAllErrors;

impl Flag for RetryAllErrors {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "retry-all-errors",
            short: None,
            takes: Takes::Switch,
            category: Category::Limits,
            important: false,
            help: "Try again after every failure",
            doc: "Retries after any failure, even one that will most likely happen again. With --fail, a status of \
                  400 or above is a failure.",
            example: "haul --retry 5 --retry-all-errors https://example.com/",
            see_also: &["retry"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().retry.all_errors = value.on();
        Ok(())
    }
}
