//! The option `--noproxy`: sets the hosts that are reached without a proxy.

use super::prelude::*;

pub(super) struct NoproxyFlag;

impl FlagDefinition for NoproxyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "noproxy",
            short: None,
            syntax: FlagSyntax::Value("hosts"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Reach these hosts without a proxy",
            doc: "Hosts to reach without a proxy, separated by commas: names, which cover all their subdomains, \
                  addresses, and networks (10.0.0.0/8). With a port (example.com:8080) an entry counts for that \
                  port only; in curl's place it matches nothing, as in curl. \"*\" is every host, \"\" none. \
                  Replaces the variable no_proxy.",
            example: "haul --noproxy example.com,10.0.0.0/8 -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().no_proxy = Some(value.text()?.to_owned());
        Ok(())
    }
}
