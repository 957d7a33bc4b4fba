//! `--suppress-connect-headers`.

use super::prelude::*;

pub(super) struct SuppressConnectHeaders;

impl Flag for SuppressConnectHeaders {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "suppress-connect-headers",
            short: None,
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Leave heads of CONNECT out",
            doc: "Leaves what proxies answer to CONNECT out of -D and of what -v shows.",
            example: "haul --suppress-connect-headers -D heads -p -x http://proxy:3128 https://example.com/",
            see_also: &["dump-header", "proxytunnel"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().suppress_connect_headers = value.on();
        Ok(())
    }
}
