//! The option `--extract-bytes`: `--extract` matches on the bytes of a body instead of its text.

use super::prelude::*;

pub(super) struct ExtractBytesFlag;

impl FlagDefinition for ExtractBytesFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "extract-bytes",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Search the bytes of bodies as they are",
            doc: "Lets the --extract of its stage search the bytes of bodies as they are and print them unchanged, \
                  whatever the charset. Without it, bodies are decoded to UTF-8 first.",
            example: "haul --extract '(?-u)\\x89PNG' --extract-bytes https://example.com/logo.png",
            see_also: "extract",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().extract_bytes = value.is_on();
        Ok(())
    }
}
