//! `--socks5-basic`.

use super::prelude::*;

pub(super) struct Socks5Basic;

impl Flag for Socks5Basic {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "socks5-basic",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Name a user to SOCKS5 proxies",
            doc: "Allows user and password with a SOCKS5 proxy. haul always does.",
            example: "haul --socks5-basic --socks5 proxy:1080 https://example.com/",
            see_also: &["socks5"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
