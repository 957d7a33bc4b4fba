//! The option `--proxy-anyauth`: allows every authentication scheme with the proxy that haul
//! supports.

use super::prelude::*;

pub(super) struct ProxyAnyauthFlag;

impl FlagDefinition for ProxyAnyauthFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-anyauth",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Allow every authentication with the proxy",
            doc: "Like --anyauth, for an HTTP proxy and --proxy-user.",
            example: "haul --proxy-anyauth -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy-user anyauth",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().anyauth = value.is_on();
        Ok(())
    }
}
