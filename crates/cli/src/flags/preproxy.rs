//! The option `--preproxy`: connects to the proxy through this SOCKS proxy.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct PreproxyFlag;

impl FlagDefinition for PreproxyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "preproxy",
            short: None,
            syntax: FlagSyntax::Value("[protocol://]host[:port]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Reach the proxy through this SOCKS proxy",
            doc: "Connects to this SOCKS proxy first, and through it to the HTTP or HTTPS proxy of --proxy; without \
                  --proxy, to the server itself, whatever the environment says. The protocol is socks4, which is the \
                  default, socks4a, socks5 or socks5h.",
            example: "haul --preproxy socks5h://localhost:1080 -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy socks5-hostname",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks4).map_err(refuse_proxy)?;
        if !proxy.kind().is_socks() {
            return Err(UsageErrorReason::bad_use("a SOCKS proxy is expected"));
        }
        args.proxy().preproxy = Some(proxy);
        Ok(())
    }
}
