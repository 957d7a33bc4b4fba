//! The option `--dns-interface`: sends DNS queries from this network device.

use super::prelude::*;

pub(super) struct DnsInterfaceFlag;

impl FlagDefinition for DnsInterfaceFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "dns-interface",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Connection,
            important: false,
            help: "Send DNS queries by this interface",
            doc: "Sends queries to name servers by this network interface. Lookups then ask the servers of /etc/resolv.conf or --dns-servers, not the system's resolver.",
            example: "haul --dns-interface lo http://localhost/",
            see_also: "dns-servers interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let name = value.text()?;
        args.transfer().dns.interface = (!name.is_empty()).then(|| name.to_owned());
        Ok(())
    }
}
