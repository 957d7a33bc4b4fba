//! `--abstract-unix-socket`.

use super::prelude::*;
use crate::plan::UnixSocket;

pub(super) struct AbstractUnixSocket;

impl Flag for AbstractUnixSocket {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "abstract-unix-socket",
            short: None,
            takes: Takes::Value("path"),
            category: Category::Connection,
            important: false,
            help: "Connect to this abstract Unix socket",
            doc: "Like --unix-socket, in the abstract namespace of Linux; PATH is given without the leading \"@\" or \
                  NUL.",
            example: "haul --abstract-unix-socket app http://localhost/",
            see_also: &["unix-socket"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let name = match value.bytes() {
            b"" => return Err(Reason::Blank),
            name => name.to_vec(),
        };
        args.transfer().connection.unix_socket = Some(UnixSocket::Abstract(name));
        Ok(())
    }
}
