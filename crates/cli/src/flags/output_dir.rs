//! The option `--output-dir`: sets the directory of output files.

use super::prelude::*;

pub(super) struct OutputDirFlag;

impl FlagDefinition for OutputDirFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "output-dir",
            short: None,
            syntax: FlagSyntax::Value("dir"),
            category: HelpCategory::Output,
            important: false,
            help: "Directory of output files",
            doc: "Puts the files of -o and -O into DIR.",
            example: "haul --output-dir pages -O https://example.com/a.html",
            see_also: "create-dirs output remote-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().output_dir = Some(value.path()?);
        Ok(())
    }
}
