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
            doc: "With it every failure counts as transient, also those that will most likely come \
                  again. A status is a failure with --fail.",
            example: "haul --retry 5 --retry-all-errors https://example.com/",
            see_also: &["retry"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().retry.all_errors = value.on();
        Ok(())
    }
}
