//! The option `--abstract-unix-socket`: connects to a socket in Linux's abstract namespace instead
//! of the URL's host.

use super::prelude::*;
use haul::net::local_address::UnixSocketAddress;

pub(super) struct AbstractUnixSocketFlag;

impl FlagDefinition for AbstractUnixSocketFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "abstract-unix-socket",
            short: None,
            syntax: FlagSyntax::Value("path"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect to this abstract Unix socket",
            doc: "Like --unix-socket, in the abstract namespace of Linux; PATH is given without the leading \"@\" or \
                  NUL.",
            example: "haul --abstract-unix-socket app http://localhost/",
            see_also: "unix-socket",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let name = match value.bytes() {
            b"" => return Err(UsageErrorReason::Blank),
            name => name.to_vec(),
        };
        args.transfer().options.connect.unix_socket = Some(UnixSocketAddress::Abstract(name));
        Ok(())
    }
}
