//! The option `--key`: names the file of the client certificate's private key.

use super::prelude::*;

pub(super) struct KeyFlag;

impl FlagDefinition for KeyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "key",
            short: None,
            syntax: FlagSyntax::Value("key"),
            category: HelpCategory::Tls,
            important: false,
            help: "Key of the client certificate",
            doc: "The private key for --cert, if it is not in the same file.",
            example: "haul --cert me.pem --key me.key https://example.com/",
            see_also: "cert pass key-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.client.key = Some(value.path()?);
        Ok(())
    }
}
