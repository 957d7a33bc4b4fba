//! The option `--proxy` (`-x`): uses this proxy.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy;

pub(super) struct ProxyFlag;

impl FlagDefinition for ProxyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy",
            short: Some('x'),
            syntax: FlagSyntax::Value("[protocol://]host[:port]"),
            category: HelpCategory::Proxy,
            important: true,
            help: "Use this proxy",
            doc: "Sends requests through this proxy instead of the one that the environment names (http_proxy, \
                  https_proxy, all_proxy; no_proxy applies to both). The protocol is http, which is the default, \
                  https, socks4, socks4a, socks5 or socks5h; the default port is 1080, for https 443. User and \
                  password may be part of it, percent-encoded. \"\" means no proxy.",
            example: "haul -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy-user noproxy preproxy proxytunnel socks5-hostname",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().proxy = Some(match value.text()? {
            "" => None,
            text => Some(proxy::Proxy::parse(text).map_err(refuse_proxy)?),
        });
        Ok(())
    }
}
