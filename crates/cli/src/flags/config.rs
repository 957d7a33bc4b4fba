//! The option `--config` (`-K`): reads further options from a file.

use super::prelude::*;

pub(super) struct ConfigFlag;

impl FlagDefinition for ConfigFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "config",
            short: Some('K'),
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::General,
            important: false,
            help: "Read options from a file",
            doc: "Reads options from FILE as if they stood here: one a line, \"name = value\" or \"-x value\". Lines \
                  that begin with # are comments; values with spaces need quotes. \"-\" is standard input. A file may \
                  name other files, up to five levels deep.",
            example: "haul -K urls.txt",
            see_also: "input-file disable",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.config = Some(value.path()?);
        Ok(())
    }
}
