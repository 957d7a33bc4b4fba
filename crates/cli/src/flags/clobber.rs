//! The options `--clobber`, which replaces existing output files, and `--no-clobber`, which adds a
//! number to the name of the new file.

use super::prelude::*;

pub(super) struct ClobberFlag;

impl FlagDefinition for ClobberFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "clobber",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Replace existing files (default)",
            doc: "Replaces existing files, which is the default except for names that the server chooses with -J. \
                  --no-clobber writes to the first of FILE.1 to FILE.100 that does not exist, and fails with 23 if \
                  all do.",
            example: "haul --no-clobber -O https://example.com/file.tar.gz",
            see_also: "skip-existing remote-header-name output",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().clobber = Some(value.is_on());
        Ok(())
    }
}
