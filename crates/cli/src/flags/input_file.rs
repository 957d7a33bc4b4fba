//! The option `--input-file`: fetches the URLs in a file, one per line.

use super::prelude::*;

pub(super) struct InputFileFlag;

impl FlagDefinition for InputFileFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "input-file",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Parallel,
            important: true,
            help: "Fetch the URLs in a file, one a line",
            doc: "Reads URLs from FILE, or from standard input for \"-\", and starts with the first line. Memory does \
                  not grow with the length of the list. Empty lines and lines that begin with # are skipped.",
            example: "haul --input-file list.txt",
            see_also: "config url parallel-max",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let file = value.content()?;
        args.group().urls.push_input_file(file);
        Ok(())
    }
}
