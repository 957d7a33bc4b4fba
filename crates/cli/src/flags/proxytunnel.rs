//! `-p`, `--proxytunnel`.

use super::prelude::*;

pub(super) struct Proxytunnel;

impl Flag for Proxytunnel {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxytunnel",
            short: Some('p'),
            takes: Takes::Switch,
            category: Category::Proxy,
            important: false,
            help: "Tunnel http through the proxy too",
            doc: "Asks an HTTP proxy for a tunnel (CONNECT) for http URLs too; https URLs always use one.",
            example: "haul -p -x http://proxy.example:3128 http://example.com/",
            see_also: &["proxy"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tunnel = value.on();
        Ok(())
    }
}
