//! `--proxy1.0`.

use super::prelude::*;
use crate::resolve::identity::refuse_proxy;
use haul_policy::proxy::Proxy;

pub(super) struct Proxy10;

impl Flag for Proxy10 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy1.0",
            short: None,
            takes: Takes::Value("url"),
            category: Category::Proxy,
            important: false,
            help: "Use this HTTP proxy, with HTTP/1.0",
            doc: "Like --proxy, but CONNECT requests are HTTP/1.0.",
            example: "haul --proxy1.0 proxy:3128 http://example.com/",
            see_also: &["proxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().http10 = true;
        args.proxy().proxy = Some(Some(Proxy::parse(value.content()?).map_err(refuse_proxy)?));
        Ok(())
    }
}
