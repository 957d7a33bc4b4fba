//! The option `--allow-body-files`: the lines of `--jsonl-in` may name files that are sent.

use super::prelude::*;

pub(super) struct AllowBodyFilesFlag;

impl FlagDefinition for AllowBodyFilesFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "allow-body-files",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Allow \"body_file\" in the lines of --jsonl-in",
            doc: "Allows the key \"body_file\" in the lines of --jsonl-in, which names a file to send. Without this \
                  option such a line fails, because a list from somebody else could send any file that you can read.",
            example: "haul --jsonl-in --allow-body-files --input-file mine.jsonl https://example.com/upload",
            see_also: "jsonl-in",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().allow_body_files = value.is_on();
        Ok(())
    }
}
