//! `--retry-connrefused`.

use super::prelude::*;

pub(super) struct RetryConnrefused;

impl Flag for RetryConnrefused {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "retry-connrefused",
            short: None,
            takes: Takes::Switch,
            category: Category::Limits,
            important: false,
            help: "Try again after a refused connection",
            doc: "Retries when the connection is refused, too.",
            example: "haul --retry 5 --retry-connrefused https://example.com/",
            see_also: &["retry"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().retry.connrefused = value.on();
        Ok(())
    }
}
