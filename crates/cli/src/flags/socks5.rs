//! The option `--socks5`: uses this SOCKS5 proxy.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks5Flag;

impl FlagDefinition for Socks5Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5",
            short: None,
            syntax: FlagSyntax::Value("host[:port]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Use this proxy by SOCKS5",
            doc: "Replaces --proxy with a SOCKS5 proxy (RFC 1928); haul resolves names. The default port is 1080.",
            example: "haul --socks5 localhost:1080 https://example.com/",
            see_also: "proxy preproxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks5).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
