//! The option `--fsync`: makes a transfer wait until its output file is on the disk.

use super::prelude::*;

pub(super) struct FsyncFlag;

impl FlagDefinition for FsyncFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "fsync",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Flush files to disk before success",
            doc: "Flushes each file and its directory entry to disk before the transfer counts as done, so that it \
                  survives a power failure. Off by default: it is not needed to survive a killed process, and it can \
                  take longer than the transfer.",
            example: "haul --fsync -o file https://example.com/file",
            see_also: "output create-file-mode",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().fsync = value.is_on();
        Ok(())
    }
}
