//! The option `--happy-eyeballs-timeout-ms`: sets the head start of IPv6 over IPv4 when connecting,
//! in milliseconds.

use super::prelude::*;
use haul::net::happy_eyeballs::ConnectOptions;
use std::time::Duration;

/// The greatest accepted value of `--happy-eyeballs-timeout-ms`: one day, in milliseconds.
const MAX: u64 = 86_400_000;

pub(super) struct HappyEyeballsTimeoutMsFlag;

impl FlagDefinition for HappyEyeballsTimeoutMsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "happy-eyeballs-timeout-ms",
            short: None,
            syntax: FlagSyntax::Value("milliseconds"),
            category: HelpCategory::Connection,
            important: false,
            help: "Head start of IPv6 over IPv4",
            doc: "How long only IPv6 addresses are tried before IPv4 ones are tried as well (RFC 8305). Default 200 \
                  milliseconds, which 0 means too.",
            example: "haul --happy-eyeballs-timeout-ms 300 https://example.com/",
            see_also: "ipv4 ipv6 connect-timeout",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.attempt_delay = match value.number_in(0, MAX)? {
            0 => ConnectOptions::default().attempt_delay,
            millis => Duration::from_millis(millis),
        };
        Ok(())
    }
}
