//! The option `--retry`: sets how often a transfer is retried after a transient failure.

use super::prelude::*;

pub(super) struct RetryFlag;

impl FlagDefinition for RetryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "retry",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Limits,
            important: true,
            help: "Try again after a transient failure",
            doc: "Retries a transfer up to NUM times after a timeout, a broken connection, or a status of 408, 429, \
                  500, 502, 503, 504, 522 or 524, if its method may be sent twice (not POST or PATCH; as `curl`, any \
                  method). A body that broke off is continued at the exact byte if the content is provably the same; \
                  otherwise it starts over, provided nothing of it has been delivered. Default 3; 0 turns retries \
                  off. Pauses double from one second unless --retry-delay is given; Retry-After is obeyed. As `curl`, \
                  a reply that is retried is still delivered: in a file the next one replaces it, on standard output \
                  the next one follows it.",
            example: "haul --retry 5 https://example.com/",
            see_also: "retry-delay retry-max-time retry-connrefused retry-all-errors",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.retry.max = value.number_in(0, u64::from(u32::MAX))? as u32;
        Ok(())
    }
}
