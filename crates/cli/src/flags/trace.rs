//! The option `--trace`: writes all traffic to this file, as hexadecimal digits and text.

use super::prelude::*;
use crate::plan::TraceFormat;

pub(super) struct TraceFlag;

impl FlagDefinition for TraceFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "trace",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Verbose,
            important: false,
            help: "Write all traffic to a file",
            doc: "Writes heads and bodies of requests and replies to FILE, in hexadecimal and as text; \"-\" is \
                  standard output, \"%\" standard error. Values of credentials and cookies are left out.",
            example: "haul --trace log https://example.com/",
            see_also: "trace-ascii verbose",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let file = value.path()?;
        args.global.trace.form = TraceFormat::Hex;
        args.global.trace.file = Some(file);
        Ok(())
    }
}
