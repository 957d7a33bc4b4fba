//! The option `--remote-time` (`-R`): sets the modification time of output files to that of the
//! content.

use super::prelude::*;

pub(super) struct RemoteTimeFlag;

impl FlagDefinition for RemoteTimeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "remote-time",
            short: Some('R'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Give files the date of the reply",
            doc: "Sets the modification time of the file to the Last-Modified of the reply, if there is one.",
            example: "haul -R -O https://example.com/file",
            see_also: "time-cond remote-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().remote_time = value.is_on();
        Ok(())
    }
}
