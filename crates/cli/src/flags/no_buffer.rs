//! The option `--no-buffer` (`-N`): is accepted without an effect, because haul never delays
//! output.

use super::prelude::*;

pub(super) struct NoBufferFlag;

impl FlagDefinition for NoBufferFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "no-buffer",
            short: Some('N'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::Output,
            important: false,
            help: "Write at once",
            doc: "Accepted for compatibility with curl. haul writes output as soon as it has it.",
            example: "haul -N https://example.com/",
            see_also: "output",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}
