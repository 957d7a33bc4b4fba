//! The option `--mptcp`: uses Multipath TCP.

use super::prelude::*;

pub(super) struct MptcpFlag;

impl FlagDefinition for MptcpFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "mptcp",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Connection,
            important: false,
            help: "Use Multipath TCP",
            doc: "Uses Multipath TCP (RFC 8684), so that a connection may use several networks at once. Where the \
                  system or the server does not support it, the connection is an ordinary one. It has no effect on \
                  HTTP/3.",
            example: "haul --mptcp https://example.com/",
            see_also: "tcp-fastopen interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.multipath = value.is_on();
        Ok(())
    }
}
