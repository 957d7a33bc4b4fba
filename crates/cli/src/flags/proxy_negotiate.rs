//! The option `--proxy-negotiate`: allows Negotiate authentication with the proxy.

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct ProxyNegotiateFlag;

impl FlagDefinition for ProxyNegotiateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-negotiate",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Allow Negotiate authentication with the proxy",
            doc: "Like --negotiate, for an HTTP proxy.",
            example: "haul --proxy-negotiate -x http://proxy.example:3128 https://example.com/",
            see_also: "negotiate proxy-service-name proxy-user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().allowed.get_or_insert(NONE).negotiate = value.is_on();
        Ok(())
    }
}
