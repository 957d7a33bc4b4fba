//! The option `--ipv4` (`-4`): uses only IPv4 addresses.

use super::prelude::*;
use haul::net::dns::AddressFamily;

pub(super) struct Ipv4Flag;

impl FlagDefinition for Ipv4Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ipv4",
            short: Some('4'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::Connection,
            important: false,
            help: "Use IPv4 addresses only",
            doc: "Resolves names to IPv4 addresses only.",
            example: "haul -4 https://example.com/",
            see_also: "ipv6",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().options.family = AddressFamily::V4;
        Ok(())
    }
}
