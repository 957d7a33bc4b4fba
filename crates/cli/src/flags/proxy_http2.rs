//! The option `--proxy-http2`: offers HTTP/2 to an https proxy.

use super::prelude::*;

pub(super) struct ProxyHttp2Flag;

impl FlagDefinition for ProxyHttp2Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-http2",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Offer HTTP/2 to an https proxy",
            doc: "Offers HTTP/2 to an https proxy. If it accepts, requests for http URLs share one connection to it, \
                  and each tunnel to an https origin is a stream of that connection. What is spoken with the origin \
                  inside the tunnel does not change. Other proxies are spoken to over HTTP/1.1.",
            example: "haul --proxy-http2 -x https://proxy.example https://example.com/",
            see_also: "http2 proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().http2 = value.is_on();
        Ok(())
    }
}
