//! The option `--unix-socket`: connects to this Unix socket instead of the URL's host.

use super::prelude::*;
use haul::net::local_address::UnixSocketAddress;

pub(super) struct UnixSocketFlag;

impl FlagDefinition for UnixSocketFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "unix-socket",
            short: None,
            syntax: FlagSyntax::Value("path"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect to this Unix socket",
            doc: "Connects to the Unix socket at PATH instead of the URL's host; Host, SNI and everything else stay \
                  as in the URL.",
            example: "haul --unix-socket /run/app.sock http://localhost/",
            see_also: "abstract-unix-socket connect-to",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.unix_socket = Some(UnixSocketAddress::Path(value.path()?));
        Ok(())
    }
}
