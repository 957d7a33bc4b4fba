//! The option `--proxy-basic`: allows Basic authentication with the proxy.

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct ProxyBasicFlag;

impl FlagDefinition for ProxyBasicFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-basic",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Allow Basic authentication with the proxy",
            doc: "Like --basic, for --proxy-user.",
            example: "haul --proxy-basic -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy-user basic",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().allowed.get_or_insert(NONE).basic = value.is_on();
        Ok(())
    }
}
