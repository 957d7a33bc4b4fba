//! The option `--socks4`: uses this SOCKS4 proxy.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks4Flag;

impl FlagDefinition for Socks4Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks4",
            short: None,
            syntax: FlagSyntax::Value("host[:port]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Use this proxy by SOCKS4",
            doc: "Replaces --proxy with a SOCKS4 proxy, which knows IPv4 addresses only; haul resolves names. The \
                  default port is 1080.",
            example: "haul --socks4 localhost:1080 https://example.com/",
            see_also: "proxy preproxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks4).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
