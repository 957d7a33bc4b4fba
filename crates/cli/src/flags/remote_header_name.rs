//! The option `--remote-header-name` (`-J`): with `-O`, takes the name of the output file from the
//! response.

use super::prelude::*;

pub(super) struct RemoteHeaderNameFlag;

impl FlagDefinition for RemoteHeaderNameFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "remote-header-name",
            short: Some('J'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "With -O, take the file name from the server",
            doc: "With -O, takes the file name from Content-Disposition (RFC 6266) if the reply has one, without any \
                  directory in it; else from the URL that redirects led to, else from the URL. A name that the server \
                  chose never replaces a file: if the file exists, the transfer fails with 23 unless --clobber, \
                  --no-clobber or --skip-existing is given.",
            example: "haul -O -J https://example.com/download?id=7",
            see_also: "remote-name clobber skip-existing",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().remote_header_name = value.is_on();
        Ok(())
    }
}
