//! The option `--create-dirs`: creates missing directories of output files.

use super::prelude::*;

pub(super) struct CreateDirsFlag;

impl FlagDefinition for CreateDirsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "create-dirs",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Create missing directories for output files",
            doc: "Creates missing directories for the files that -o or --output-dir names.",
            example: "haul --create-dirs -o 'pages/#1/index.html' 'http://example.com/[1-3]'",
            see_also: "output output-dir mirror-paths",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().create_dirs = value.is_on();
        Ok(())
    }
}
