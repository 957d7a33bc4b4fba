//! The option `--doh-insecure`: does not verify the certificate of the DNS-over-HTTPS server.

use super::prelude::*;

pub(super) struct DohInsecureFlag;

impl FlagDefinition for DohInsecureFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "doh-insecure",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Connection,
            important: false,
            help: "Accept any certificate of the --doh-url server",
            doc: "Like --insecure, for the server of --doh-url: whoever controls the network can read and change the answers.",
            example: "haul --doh-insecure --doh-url https://dns.example/dns-query https://example.com/",
            see_also: "doh-url insecure",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().doh_insecure = value.is_on();
        Ok(())
    }
}
