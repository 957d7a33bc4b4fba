//! The option `--trace-ascii`: writes all traffic to this file, as text.

use super::prelude::*;
use crate::plan::TraceFormat;

pub(super) struct TraceAsciiFlag;

impl FlagDefinition for TraceAsciiFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "trace-ascii",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Verbose,
            important: false,
            help: "Write all traffic to a file as text",
            doc: "Like --trace, without the hexadecimal digits.",
            example: "haul --trace-ascii log https://example.com/",
            see_also: "trace verbose",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let file = value.path()?;
        args.global.trace.form = TraceFormat::Ascii;
        args.global.trace.file = Some(file);
        Ok(())
    }
}
