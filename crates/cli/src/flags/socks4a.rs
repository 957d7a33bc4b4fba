//! `--socks4a`.

use super::prelude::*;
use crate::resolve::identity::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks4a;

impl Flag for Socks4a {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "socks4a",
            short: None,
            takes: Takes::Value("host[:port]"),
            category: Category::Proxy,
            important: false,
            help: "Use this proxy by SOCKS4a, which resolves names",
            doc: "Replaces --proxy with a SOCKS4a proxy, which resolves names itself. The default port is 1080.",
            example: "haul --socks4a localhost:1080 https://example.com/",
            see_also: &["proxy", "preproxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks4a).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
