//! The option `--proto-redir`: sets the schemes that redirects may have.

use super::prelude::*;
use super::proto::parse_protocols;

pub(super) struct ProtoRedirFlag;

impl FlagDefinition for ProtoRedirFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proto-redir",
            short: None,
            syntax: FlagSyntax::Value("protocols"),
            category: HelpCategory::Connection,
            important: false,
            help: "Follow redirects to these protocols only",
            doc: "Allows redirects only these schemes, among those that --proto allows. The value is a list of words \
                  separated by commas: \"https\" or \"+https\" allows, \"-http\" forbids, \"=https\" allows only that \
                  one, \"all\" allows both. Default http and https.",
            example: "haul --proto-redir =https https://example.com/",
            see_also: "proto location",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().redirect.redirected = parse_protocols(value, args)?;
        Ok(())
    }
}
