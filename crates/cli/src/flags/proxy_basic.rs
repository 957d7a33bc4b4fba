//! `--proxy-basic`.

use super::field::NONE;
use super::prelude::*;

pub(super) struct ProxyBasic;

impl Flag for ProxyBasic {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-basic",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Allow Basic authentication with the proxy",
            doc: "Like --basic, for --proxy-user.",
            example: "haul --proxy-basic -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: &["proxy-user", "basic"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().allowed.get_or_insert(NONE).basic = value.on();
        Ok(())
    }
}
