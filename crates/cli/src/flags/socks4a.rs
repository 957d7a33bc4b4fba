//! The option `--socks4a`: uses this SOCKS4a proxy, which resolves host names.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks4aFlag;

impl FlagDefinition for Socks4aFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks4a",
            short: None,
            syntax: FlagSyntax::Value("host[:port]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Use this proxy by SOCKS4a, which resolves names",
            doc: "Replaces --proxy with a SOCKS4a proxy, which resolves names itself. The default port is 1080.",
            example: "haul --socks4a localhost:1080 https://example.com/",
            see_also: "proxy preproxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks4a).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
