//! `--keepalive-intvl`.

use super::keepalive_time::seconds;
use super::prelude::*;

pub(super) struct KeepaliveIntvl;

impl Flag for KeepaliveIntvl {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "keepalive-intvl",
            short: None,
            takes: Takes::Value("seconds"),
            category: Category::Connection,
            important: false,
            help: "Time between keepalive probes",
            doc: "Seconds between probes. The default is that of --keepalive-time. No effect with --no-keepalive.",
            example: "haul --keepalive-intvl 5 --keepalive-time 60 https://example.com/",
            see_also: &["keepalive", "keepalive-time", "keepalive-cnt"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let interval = seconds(value)?;
        if let Some(keepalive) = &mut args.transfer().connection.keepalive {
            keepalive.interval = interval;
        }
        Ok(())
    }
}
