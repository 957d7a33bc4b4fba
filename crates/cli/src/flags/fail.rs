//! The option `--fail` (`-f`): treats a status of 400 or above as a failure. On by default.

use super::prelude::*;

pub(super) struct FailFlag;

impl FlagDefinition for FailFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "fail",
            short: Some('f'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: true,
            help: "Treat a status of 400 or above as a failure (default)",
            doc: "For a status of 400 or above, prints one line on stderr instead of the body and exits with 22. This \
                  is the default; --no-fail delivers such bodies and exits with 0.",
            example: "haul --no-fail https://example.com/missing",
            see_also: "retry",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if args.global.persona.is_curl() && value.is_on() && args.transfer().options.fail_with_body {
            args.warn("--fail deselects --fail-with-body here");
        }
        let options = &mut args.transfer().options;
        (options.fail, options.fail_with_body) = (value.is_on(), false);
        Ok(())
    }
}
