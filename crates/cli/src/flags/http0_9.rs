//! The option `--http0.9`: accepts an HTTP/0.9 response, which has no head.

use super::prelude::*;

pub(super) struct Http09Flag;

impl FlagDefinition for Http09Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http0.9",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Accept a reply without a head",
            doc: "Accepts a reply that does not begin like HTTP as an HTTP/0.9 body. Otherwise it is a failure (1), \
                  since a server of any other protocol would seem to answer.",
            example: "haul --http0.9 http://example.com/",
            see_also: "http1.0",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.deviations.http09 = value.is_on();
        Ok(())
    }
}
