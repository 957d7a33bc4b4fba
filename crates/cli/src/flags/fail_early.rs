//! The option `--fail-early`: begins no further transfers after the first failure.

use super::prelude::*;

pub(super) struct FailEarlyFlag;

impl FlagDefinition for FailEarlyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "fail-early",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Limits,
            important: false,
            help: "Stop at the first failure",
            doc: "Ends the run at the first transfer that fails, after its retries, instead of going on with the \
                  others.",
            example: "haul --fail-early https://example.com/a https://example.com/b",
            see_also: "fail retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.fail_early = value.is_on();
        Ok(())
    }
}
