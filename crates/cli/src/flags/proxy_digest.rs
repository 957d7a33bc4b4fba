//! The option `--proxy-digest`: allows Digest authentication with the proxy.

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct ProxyDigestFlag;

impl FlagDefinition for ProxyDigestFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-digest",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Allow Digest authentication with the proxy",
            doc: "Like --digest, for --proxy-user.",
            example: "haul --proxy-digest -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy-user digest",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().allowed.get_or_insert(NONE).digest = value.is_on();
        Ok(())
    }
}
