//! The option `--keepalive-intvl`: sets the time between two keepalive probes.

use super::keepalive_time::seconds;
use super::prelude::*;

pub(super) struct KeepaliveIntvlFlag;

impl FlagDefinition for KeepaliveIntvlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "keepalive-intvl",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Connection,
            important: false,
            help: "Time between keepalive probes",
            doc: "Seconds between probes. The default is that of --keepalive-time. No effect with --no-keepalive.",
            example: "haul --keepalive-intvl 5 --keepalive-time 60 https://example.com/",
            see_also: "keepalive keepalive-time keepalive-cnt",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let interval = seconds(value)?;
        if let Some(keepalive) = &mut args.transfer().keepalive {
            keepalive.interval = interval;
        }
        Ok(())
    }
}
