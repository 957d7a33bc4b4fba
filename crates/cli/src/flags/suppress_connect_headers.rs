//! The option `--suppress-connect-headers`: does not print the heads of a proxy's responses to
//! `CONNECT`.

use super::prelude::*;

pub(super) struct SuppressConnectHeadersFlag;

impl FlagDefinition for SuppressConnectHeadersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "suppress-connect-headers",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Leave out the proxy's replies to CONNECT",
            doc: "Leaves out the proxy's replies to CONNECT in -D and -v.",
            example: "haul --suppress-connect-headers -D heads -p -x http://proxy:3128 https://example.com/",
            see_also: "dump-header proxytunnel",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().suppress_connect_headers = value.is_on();
        Ok(())
    }
}
