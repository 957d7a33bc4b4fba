//! The option `--parallel-immediate`: opens a connection for each transfer instead of waiting for
//! one to share.

use super::prelude::*;

pub(super) struct ParallelImmediateFlag;

impl FlagDefinition for ParallelImmediateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "parallel-immediate",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Open connections at once",
            doc: "Opens a connection for each transfer as long as none to its host is open. By default, the transfers \
                  to a server that may speak HTTP/2 wait for the first connection, because they may share it. \
                  Without TLS, haul never waits, unless --http2-prior-knowledge is given.",
            example: "haul -Z --parallel-immediate https://example.com/a https://example.com/b",
            see_also: "parallel",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.parallel_immediate = value.is_on();
        Ok(())
    }
}
