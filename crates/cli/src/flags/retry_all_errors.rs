//! The option `--retry-all-errors`: retries after every failure.

use super::prelude::*;

pub(super) struct RetryAllErrorsFlag;

impl FlagDefinition for RetryAllErrorsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "retry-all-errors",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Limits,
            important: false,
            help: "Try again after every failure",
            doc: "Retries after any failure, even one that will most likely happen again. With --fail, a status of \
                  400 or above is a failure.",
            example: "haul --retry 5 --retry-all-errors https://example.com/",
            see_also: "retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.retry.all_errors = value.is_on();
        Ok(())
    }
}
