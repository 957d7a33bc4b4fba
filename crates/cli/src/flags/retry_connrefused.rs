//! The option `--retry-connrefused`: retries after a refused connection.

use super::prelude::*;

pub(super) struct RetryConnrefusedFlag;

impl FlagDefinition for RetryConnrefusedFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "retry-connrefused",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Limits,
            important: false,
            help: "Try again after a refused connection",
            doc: "Retries when the connection is refused, too.",
            example: "haul --retry 5 --retry-connrefused https://example.com/",
            see_also: "retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.retry.connrefused = value.is_on();
        Ok(())
    }
}
