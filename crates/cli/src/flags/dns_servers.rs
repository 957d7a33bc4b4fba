//! The option `--dns-servers`: sets the DNS servers to ask.

use haul::net::dns::ChosenDnsServers;

use super::prelude::*;

pub(super) struct DnsServersFlag;

impl FlagDefinition for DnsServersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "dns-servers",
            short: None,
            syntax: FlagSyntax::Value("addresses"),
            category: HelpCategory::Connection,
            important: false,
            help: "Ask these name servers",
            doc: "Asks these name servers instead of the system's resolver: addresses between commas, each with a port or without (53). \"[ADDRESS]:PORT\" is IPv6 with a port. /etc/hosts and --resolve still come first.",
            example: "haul --dns-servers 127.0.0.1:5353,192.0.2.53 http://localhost/",
            see_also: "dns-interface resolve",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let form = UsageErrorReason::BadSyntax("ADDRESS[:PORT][,ADDRESS[:PORT]]...");
        args.transfer().dns.servers = ChosenDnsServers::parse(value.text()?).map_err(|_| form)?.servers;
        Ok(())
    }
}
