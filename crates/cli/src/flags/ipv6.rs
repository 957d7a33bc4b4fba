//! The option `--ipv6` (`-6`): uses only IPv6 addresses.

use super::prelude::*;
use haul::net::dns::AddressFamily;

pub(super) struct Ipv6Flag;

impl FlagDefinition for Ipv6Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ipv6",
            short: Some('6'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::Connection,
            important: false,
            help: "Use IPv6 addresses only",
            doc: "Resolves names to IPv6 addresses only.",
            example: "haul -6 https://example.com/",
            see_also: "ipv4",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().options.family = AddressFamily::V6;
        Ok(())
    }
}
