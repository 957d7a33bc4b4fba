//! The option `--netrc` (`-n`): takes user and password from the default netrc file.

use super::prelude::*;

pub(super) struct NetrcFlag;

impl FlagDefinition for NetrcFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "netrc",
            short: Some('n'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Take passwords from the netrc file",
            doc: "Looks up the host of each request in the file that $NETRC names, else in ~/.netrc. Its password \
                  takes precedence over one in the URL; if the URL names a user, only the entry of that user counts. \
                  -u takes precedence over both. A file that cannot be read is an error (26).",
            example: "haul -n https://example.com/",
            see_also: "netrc-file netrc-optional user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().netrc = value.is_on();
        Ok(())
    }
}
