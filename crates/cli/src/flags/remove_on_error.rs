//! The option `--remove-on-error`: removes the partial output file of a failed transfer.

use super::prelude::*;

pub(super) struct RemoveOnErrorFlag;

impl FlagDefinition for RemoveOnErrorFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "remove-on-error",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Leave no partial file after a failure",
            doc: "Removes a partly written file if its transfer fails. By default it stays under a temporary name \
                  beside the file, for the next run to continue. No effect on outputs that are not regular files.",
            example: "haul --remove-on-error -o file https://example.com/file",
            see_also: "output continue-at fail",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().remove_on_error = value.is_on();
        Ok(())
    }
}
