//! `--proxy-digest`.

use super::field::NONE;
use super::prelude::*;

pub(super) struct ProxyDigest;

impl Flag for ProxyDigest {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-digest",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Allow Digest authentication with the proxy",
            doc: "Like --digest, for --proxy-user.",
            example: "haul --proxy-digest -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: &["proxy-user", "digest"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().allowed.get_or_insert(NONE).digest = value.on();
        Ok(())
    }
}
