//! The option `--http1.1`: uses only HTTP/1.1.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http11Flag;

impl FlagDefinition for Http11Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http1.1",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Use HTTP/1.1 only",
            doc: "Uses HTTP/1.1 and does not offer anything newer.",
            example: "haul --http1.1 https://example.com/",
            see_also: "pipeline",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().http_version = HttpVersion::Http11;
        Ok(())
    }
}
