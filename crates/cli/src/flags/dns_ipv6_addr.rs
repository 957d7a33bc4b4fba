//! The option `--dns-ipv6-addr`: sends DNS queries from this IPv6 address.

use super::prelude::*;

pub(super) struct DnsIpv6AddrFlag;

impl FlagDefinition for DnsIpv6AddrFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "dns-ipv6-addr",
            short: None,
            syntax: FlagSyntax::Value("address"),
            category: HelpCategory::Connection,
            important: false,
            help: "Send DNS queries from this IPv6 address",
            doc: "Sends queries to name servers over IPv6 from this address. Lookups then ask the servers of /etc/resolv.conf or --dns-servers, not the system's resolver.",
            example: "haul --dns-ipv6-addr ::1 http://localhost/",
            see_also: "dns-servers interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let form = UsageErrorReason::BadSyntax("an IPv6 address");
        args.transfer().dns.local_v6 = Some(value.text()?.parse().map_err(|_| form)?);
        Ok(())
    }
}
