//! `--keepalive`.

use super::prelude::*;
use crate::plan::KeepaliveArgs;

pub(super) struct Keepalive;

impl Flag for Keepalive {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "keepalive",
            short: None,
            takes: Takes::Switch,
            category: Category::Connection,
            important: false,
            help: "Probe idle connections (default)",
            doc: "Sends TCP keepalive probes on idle connections, so that a dead peer is noticed. --no-keepalive \
                  sends none.",
            example: "haul --no-keepalive https://example.com/",
            see_also: &["keepalive-time", "keepalive-intvl", "keepalive-cnt"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().connection.keepalive = value.on().then(KeepaliveArgs::default);
        Ok(())
    }
}
