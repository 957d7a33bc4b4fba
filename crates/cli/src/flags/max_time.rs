//! The option `--max-time` (`-m`): sets the time limit of a transfer.

use super::prelude::*;

pub(super) struct MaxTimeFlag;

impl FlagDefinition for MaxTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "max-time",
            short: Some('m'),
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: true,
            help: "Maximum time for a transfer",
            doc: "Limits each URL in all, in decimal seconds: looking up names, redirects, retries and the pauses \
                  between them. Exits with 28 when the time is up; a retry that there is no time for is not begun, and \
                  the failure before it is reported. Until a host answers that a redirect led to, it may use a \
                  quarter of what is left, so that a retry may be led to another. As `curl`, each try is limited \
                  alone. 0, the default, means no limit.",
            example: "haul -m 2.5 https://example.com/",
            see_also: "connect-timeout retry-max-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.seconds_for(args.global.persona)?;
        args.transfer().max_time = (!limit.is_zero()).then_some(limit);
        Ok(())
    }
}
