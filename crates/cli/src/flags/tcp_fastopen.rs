//! The option `--tcp-fastopen`: sends the first bytes with the SYN.

use super::prelude::*;

pub(super) struct TcpFastopenFlag;

impl FlagDefinition for TcpFastopenFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tcp-fastopen",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Connection,
            important: false,
            help: "Send the first bytes with the SYN",
            doc: "Sends the first bytes of a connection with its SYN (TCP Fast Open, RFC 7413) if the server has \
                  allowed it in an earlier connection. That saves a round trip; the network may deliver these bytes \
                  twice. Systems other than Linux connect as usual.",
            example: "haul --tcp-fastopen https://example.com/",
            see_also: "mptcp keepalive-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.fast_open = value.is_on();
        Ok(())
    }
}
