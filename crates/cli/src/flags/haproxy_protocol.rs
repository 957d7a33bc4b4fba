//! The option `--haproxy-protocol`: sends a PROXY protocol line at the start of each connection.

use super::prelude::*;

pub(super) struct HaproxyProtocolFlag;

impl FlagDefinition for HaproxyProtocolFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "haproxy-protocol",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Connection,
            important: false,
            help: "Send a PROXY line on each connection",
            doc: "Sends a line of HAProxy's PROXY protocol, version 1, with this client's address and port, before \
                  anything else on a connection.",
            example: "haul --haproxy-protocol http://localhost/",
            see_also: "haproxy-clientip",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.haproxy_protocol = value.is_on();
        Ok(())
    }
}
