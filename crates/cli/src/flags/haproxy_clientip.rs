//! The option `--haproxy-clientip`: sends a PROXY protocol line that contains this address.

use super::prelude::*;

pub(super) struct HaproxyClientipFlag;

impl FlagDefinition for HaproxyClientipFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "haproxy-clientip",
            short: None,
            syntax: FlagSyntax::Value("ip"),
            category: HelpCategory::Connection,
            important: false,
            help: "Send a PROXY line with this address",
            doc: "Like --haproxy-protocol, with this address as both source and destination, as curl does.",
            example: "haul --haproxy-clientip 192.0.2.1 http://localhost/",
            see_also: "haproxy-protocol",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let address = value.content()?.parse().map_err(|_| UsageErrorReason::bad_use("expected an IP address"))?;
        let connect = &mut args.transfer().options.connect;
        connect.haproxy_protocol = true;
        connect.haproxy_client = Some(address);
        Ok(())
    }
}
