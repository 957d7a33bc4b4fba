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
            help: "Leave out the proxy's replies to CONNECT",
            doc: "Leaves out the proxy's replies to CONNECT in -D and -v.",
            example: "haul --suppress-connect-headers -D heads -p -x http://proxy:3128 https://example.com/",
            see_also: &["dump-header", "proxytunnel"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().suppress_connect_headers = value.on();
        Ok(())
    }
}
