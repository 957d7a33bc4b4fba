//! `--proxy-header`.

use super::header::read;
use super::prelude::*;

pub(super) struct ProxyHeader;

impl Flag for ProxyHeader {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-header",
            short: None,
            takes: Takes::Value("header/@file"),
            category: Category::Proxy,
            important: false,
            help: "Send a header to the proxy",
            doc: "Like --header, but sent to an HTTP proxy only, not to servers.",
            example: "haul --proxy-header 'X-Team: red' -x http://proxy.example:3128 https://example.com/",
            see_also: &["proxy", "header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        if let Some(header) = read(value, args, "--proxy-header")? {
            args.proxy().fields.push(header);
        }
        Ok(())
    }
}
