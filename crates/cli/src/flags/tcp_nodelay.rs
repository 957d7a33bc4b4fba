//! `--tcp-nodelay`.

use super::prelude::*;

pub(super) struct TcpNodelay;

impl Flag for TcpNodelay {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tcp-nodelay",
            short: None,
            takes: Takes::Switch,
            category: Category::Connection,
            important: false,
            help: "Send small segments at once (default)",
            doc: "Turns Nagle's algorithm off, as is the default. --no-tcp-nodelay leaves it on.",
            example: "haul --no-tcp-nodelay https://example.com/",
            see_also: &["keepalive"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().connection.tcp_nodelay = value.on();
        Ok(())
    }
}
