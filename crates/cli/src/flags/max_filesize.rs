//! The option `--max-filesize`: sets the maximum size of a body.

use super::prelude::*;

pub(super) struct MaxFilesizeFlag;

impl FlagDefinition for MaxFilesizeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "max-filesize",
            short: None,
            syntax: FlagSyntax::Value("bytes"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum size of a body",
            doc: "Refuses a larger body, as announced, as received or as decoded, with exit code 63. K, M and G \
                  (powers of 1024) may follow the number. 0, the default, means no limit.",
            example: "haul --max-filesize 10M https://example.com/",
            see_also: "max-memory",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.size()?;
        args.transfer().options.max_size = (limit > 0).then_some(limit);
        Ok(())
    }
}
