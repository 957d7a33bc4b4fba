//! The option `--fail-with-body`: treats a status of 400 or above as a failure, but still writes
//! the body.

use super::prelude::*;

pub(super) struct FailWithBodyFlag;

impl FlagDefinition for FailWithBodyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "fail-with-body",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Fail on HTTP errors but keep the body",
            doc: "Like --fail, but the body is still delivered. The exit code is 22.",
            example: "haul --fail-with-body https://example.com/missing",
            see_also: "fail",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // haul itself treats an error status as a failure with or without the option.
        let already = &args.transfer().options;
        let has_other = already.fail && !already.fail_with_body;
        if args.global.persona.is_curl() && value.is_on() && has_other {
            args.warn("--fail-with-body deselects --fail here");
        }
        let options = &mut args.transfer().options;
        (options.fail, options.fail_with_body) = (value.is_on(), value.is_on());
        Ok(())
    }
}
