//! The option `--dns-ipv4-addr`: sends DNS queries from this IPv4 address.

use super::prelude::*;

pub(super) struct DnsIpv4AddrFlag;

impl FlagDefinition for DnsIpv4AddrFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "dns-ipv4-addr",
            short: None,
            syntax: FlagSyntax::Value("address"),
            category: HelpCategory::Connection,
            important: false,
            help: "Send DNS queries from this IPv4 address",
            doc: "Sends queries to name servers over IPv4 from this address. Lookups then ask the servers of /etc/resolv.conf or --dns-servers, not the system's resolver.",
            example: "haul --dns-ipv4-addr 127.0.0.1 http://localhost/",
            see_also: "dns-servers interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let form = UsageErrorReason::BadSyntax("an IPv4 address");
        args.transfer().dns.local_v4 = Some(value.text()?.parse().map_err(|_| form)?);
        Ok(())
    }
}
