//! `--socks5`.

use super::prelude::*;
use crate::resolve::identity::refuse_proxy;
use haul_policy::proxy::{Proxy, ProxyKind};

pub(super) struct Socks5;

impl Flag for Socks5 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "socks5",
            short: None,
            takes: Takes::Value("host[:port]"),
            category: Category::Proxy,
            important: false,
            help: "Use this proxy by SOCKS5",
            doc: "Replaces --proxy with a SOCKS5 proxy (RFC 1928); haul resolves names. The default port is 1080.",
            example: "haul --socks5 localhost:1080 https://example.com/",
            see_also: &["proxy", "preproxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let proxy = Proxy::parse_with(value.content()?, ProxyKind::Socks5).map_err(refuse_proxy)?;
        args.proxy().proxy = Some(Some(proxy));
        Ok(())
    }
}
