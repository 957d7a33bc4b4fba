//! The option `--proxy-service-name`: sets the service in the proxy's Kerberos name.

use super::prelude::*;

pub(super) struct ProxyServiceNameFlag;

impl FlagDefinition for ProxyServiceNameFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-service-name",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Kerberos service of the proxy for --proxy-negotiate",
            doc: "Like --service-name, for --proxy-negotiate.",
            example: "haul --proxy-negotiate --proxy-service-name proxy -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy-negotiate service-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().negotiate.service = Some(value.content()?.to_owned());
        Ok(())
    }
}
