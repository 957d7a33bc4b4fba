//! `--proxy-http2`.

use super::prelude::*;

pub(super) struct ProxyHttp2;

impl Flag for ProxyHttp2 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-http2",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Offer HTTP/2 to an https proxy",
            doc: "Offers HTTP/2 to an https proxy. If it accepts, requests for http URLs share one connection to it, \
                  and each tunnel to an https origin is a stream of that connection. What is spoken with the origin \
                  inside the tunnel does not change. Other proxies are spoken to over HTTP/1.1.",
            example: "haul --proxy-http2 -x https://proxy.example https://example.com/",
            see_also: &["http2", "proxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().http2 = value.on();
        Ok(())
    }
}
