//! The option `--connect-timeout`: sets the time limit for connecting.

use super::prelude::*;
use haul::net::happy_eyeballs::ConnectOptions;

pub(super) struct ConnectTimeoutFlag;

impl FlagDefinition for ConnectTimeoutFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "connect-timeout",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum time to connect",
            doc: "Limits name resolution, connection and TLS handshake together, in decimal seconds. Default 30 for \
                  many URLs, 300 for one and in curl's place; 0 is 300, too. Exits with 28 when the time is up.",
            example: "haul --connect-timeout 2.5 https://example.com/",
            see_also: "max-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.seconds_for(args.global.persona)?;
        args.transfer().connect_timeout = Some(if limit.is_zero() { ConnectOptions::default().timeout } else { limit });
        Ok(())
    }
}
