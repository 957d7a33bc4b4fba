//! The option `--sessionid`: resumes TLS sessions. On by default.

use super::prelude::*;

pub(super) struct SessionidFlag;

impl FlagDefinition for SessionidFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "sessionid",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Tls,
            important: false,
            help: "Resume TLS sessions",
            doc: "Resumes an earlier TLS session with the same server, which is the default; --no-sessionid makes \
                  each handshake a full one.",
            example: "haul --no-sessionid https://example.com/",
            see_also: "tlsv1.3",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.resume = value.is_on();
        Ok(())
    }
}
