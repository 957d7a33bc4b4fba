//! The option `--keepalive`: turns on TCP keepalive. On by default.

use super::prelude::*;
use crate::plan::KeepaliveArgs;

pub(super) struct KeepaliveFlag;

impl FlagDefinition for KeepaliveFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "keepalive",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Connection,
            important: false,
            help: "Probe idle connections (default)",
            doc: "Sends TCP keepalive probes on idle connections, so that a dead peer is noticed. --no-keepalive \
                  sends none.",
            example: "haul --no-keepalive https://example.com/",
            see_also: "keepalive-time keepalive-intvl keepalive-cnt",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().keepalive = value.is_on().then(KeepaliveArgs::default);
        Ok(())
    }
}
