//! The option `--pipeline`: sets the maximum number of unanswered requests on one HTTP/1.1
//! connection.

use super::prelude::*;

pub(super) struct PipelineFlag;

impl FlagDefinition for PipelineFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "pipeline",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Requests in flight on one HTTP/1.1 connection",
            doc: "Sends up to NUM idempotent HTTP/1.1 requests without waiting for their replies, from 1 to 1000. \
                  Default 1. If the connection breaks, unanswered requests are sent again on a new one; a server that \
                  misbehaves is not pipelined to again. A server that sends one response too many gives later URLs \
                  the content of others: what a connection delivered is kept until its end has shown that there is \
                  none, and else fetched again or failed. A connection carries at most four times NUM requests.",
            example: "haul --pipeline 32 --input-file list.txt",
            see_also: "parallel-max-host",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let most = value.number_in(1, 1000)?;
        args.global.pipeline = most as usize;
        Ok(())
    }
}
