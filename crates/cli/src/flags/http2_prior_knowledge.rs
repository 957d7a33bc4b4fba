//! The option `--http2-prior-knowledge`: uses HTTP/2 without negotiation.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http2PriorKnowledgeFlag;

impl FlagDefinition for Http2PriorKnowledgeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http2-prior-knowledge",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Use HTTP/2 without negotiation",
            doc: "Speaks HTTP/2 at once, also over plain HTTP, without negotiating it. Fails if the server does not \
                  speak it.",
            example: "haul --http2-prior-knowledge http://example.com/",
            see_also: "http2",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().http_version = HttpVersion::Http2PriorKnowledge;
        Ok(())
    }
}
