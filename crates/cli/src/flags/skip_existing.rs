//! The option `--skip-existing`: does not fetch URLs whose output file exists.

use super::prelude::*;

pub(super) struct SkipExistingFlag;

impl FlagDefinition for SkipExistingFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "skip-existing",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Skip URLs whose output file exists",
            doc: "Sends no request for a URL whose output file exists, and counts it as a success. Only the name is \
                  checked: haul gives a file its name when it is complete. With -J a name that only the reply tells \
                  is known once the reply has begun; its body is then not read.",
            example: "haul --skip-existing -O https://example.com/file.tar.gz",
            see_also: "clobber continue-at remote-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().skip_existing = value.is_on();
        Ok(())
    }
}
