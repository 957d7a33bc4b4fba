//! The option `--create-file-mode`: sets the permission bits of new output files.

use super::prelude::*;

pub(super) struct CreateFileModeFlag;

impl FlagDefinition for CreateFileModeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "create-file-mode",
            short: None,
            syntax: FlagSyntax::Value("mode"),
            category: HelpCategory::Output,
            important: false,
            help: "Permissions of new files",
            doc: "Permissions of the files that haul creates, as an octal number up to 0777, minus the umask; a file \
                  that is replaced gets them too. Default 0666 minus the umask. In curl this option concerns other \
                  protocols only.",
            example: "haul --create-file-mode 0600 -o file https://example.com/file",
            see_also: "output create-dirs",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().create_file_mode = Some(value.octal(0o777)?);
        Ok(())
    }
}
