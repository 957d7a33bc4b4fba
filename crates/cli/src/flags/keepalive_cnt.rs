//! The option `--keepalive-cnt`: sets the number of unanswered keepalive probes after which a
//! connection is closed.

use super::prelude::*;
use crate::plan::KeepaliveArgs;

/// The largest number of probes that Linux accepts.
const MAX: u64 = 127;

pub(super) struct KeepaliveCntFlag;

impl FlagDefinition for KeepaliveCntFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "keepalive-cnt",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Connection,
            important: false,
            help: "Keepalive probes before giving up",
            doc: "Gives a connection up after this many unanswered probes, 1 to 127. Default 9, which 0 means too. No \
                  effect with --no-keepalive.",
            example: "haul --keepalive-cnt 3 https://example.com/",
            see_also: "keepalive keepalive-time keepalive-intvl",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let count = value.number_in(0, MAX)?;
        if let Some(keepalive) = &mut args.transfer().keepalive {
            keepalive.count = match count {
                0 => KeepaliveArgs::default().count,
                count => count as u32,
            };
        }
        Ok(())
    }
}
