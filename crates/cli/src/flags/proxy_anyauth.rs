//! `--proxy-anyauth`.

use super::prelude::*;
use haul_policy::auth::Allowed;

pub(super) struct ProxyAnyauth;

impl Flag for ProxyAnyauth {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-anyauth",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Allow every authentication with the proxy",
            doc: "Like --anyauth, for --proxy-user.",
            example: "haul --proxy-anyauth -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: &["proxy-user", "anyauth"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().allowed = value.on().then_some(Allowed::ANY);
        Ok(())
    }
}
