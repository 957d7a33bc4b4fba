//! The option `--proxy-header`: adds, replaces or removes a header field that only the proxy
//! receives.

use super::header::read_header_option;
use super::prelude::*;

pub(super) struct ProxyHeaderFlag;

impl FlagDefinition for ProxyHeaderFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-header",
            short: None,
            syntax: FlagSyntax::Value("header/@file"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Send a header to the proxy",
            doc: "Like --header, but sent to an HTTP proxy only, not to servers.",
            example: "haul --proxy-header 'X-Team: red' -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if let Some(header) = read_header_option(value, args, "--proxy-header")? {
            args.proxy().fields.push(header);
        }
        Ok(())
    }
}
