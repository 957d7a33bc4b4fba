//! The option `--proxytunnel` (`-p`): also uses a `CONNECT` tunnel for http URLs.

use super::prelude::*;

pub(super) struct ProxytunnelFlag;

impl FlagDefinition for ProxytunnelFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxytunnel",
            short: Some('p'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Tunnel http through the proxy too",
            doc: "Asks an HTTP proxy for a tunnel (CONNECT) for http URLs too; https URLs always use one.",
            example: "haul -p -x http://proxy.example:3128 http://example.com/",
            see_also: "proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tunnel = value.is_on();
        Ok(())
    }
}
