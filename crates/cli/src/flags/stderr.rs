//! The option `--stderr`: writes messages to this file instead of standard error.

use super::prelude::*;

pub(super) struct StderrFlag;

impl FlagDefinition for StderrFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "stderr",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Verbose,
            important: false,
            help: "Write messages to a file",
            doc: "Writes what would go to stderr to FILE instead; \"-\" is standard output.",
            example: "haul --stderr log https://example.com/",
            see_also: "show-error silent",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.stderr = Some(value.path()?);
        Ok(())
    }
}
