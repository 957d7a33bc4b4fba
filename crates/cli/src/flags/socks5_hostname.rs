//! The option `--socks5-hostname`: uses this SOCKS5 proxy, which resolves host names.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks5HostnameFlag;

impl FlagDefinition for Socks5HostnameFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5-hostname",
            short: None,
            syntax: FlagSyntax::Value("host[:port]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Use this proxy by SOCKS5, which resolves names",
            doc: "Replaces --proxy with a SOCKS5 proxy (RFC 1928) that resolves names itself, so that they are not \
                  seen on the local network. The default port is 1080.",
            example: "haul --socks5-hostname localhost:1080 https://example.com/",
            see_also: "proxy preproxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks5h).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
