//! The option `--keepalive-time`: sets the idle time before the first keepalive probe.

use super::prelude::*;
use crate::plan::KeepaliveArgs;
use std::time::Duration;

/// The longest keepalive time that Linux accepts, in seconds.
const MAX: u64 = 32_767;

pub(super) struct KeepaliveTimeFlag;

impl FlagDefinition for KeepaliveTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "keepalive-time",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Connection,
            important: false,
            help: "Idle time before a keepalive probe",
            doc: "Idle seconds before the first probe, and between probes unless --keepalive-intvl says \
                  otherwise. Default 60, which 0 means too. No effect with --no-keepalive.",
            example: "haul --keepalive-time 20 https://example.com/",
            see_also: "keepalive keepalive-intvl keepalive-cnt",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let time = seconds(value)?;
        if let Some(keepalive) = &mut args.transfer().keepalive {
            keepalive.time = time.unwrap_or(KeepaliveArgs::default().time);
        }
        Ok(())
    }
}

/// Parses a keepalive time in seconds. Returns `None` for 0, which stands for the default.
pub(super) fn seconds(value: FlagValue<'_>) -> Result<Option<Duration>, UsageErrorReason> {
    let seconds = value.number_in(0, MAX)?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}
