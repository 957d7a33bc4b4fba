//! The option `--http1.0` (`-0`): uses HTTP/1.0.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http10Flag;

impl FlagDefinition for Http10Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http1.0",
            short: Some('0'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Use HTTP/1.0",
            doc: "Sends HTTP/1.0 requests. A body of unknown length cannot be sent.",
            example: "haul -0 http://example.com/",
            see_also: "http1.1",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().http_version = HttpVersion::Http10;
        Ok(())
    }
}
