//! The option `--post302`: does not change POST to GET after a 302 redirect.

use super::prelude::*;

pub(super) struct Post302Flag;

impl FlagDefinition for Post302Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "post302",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Keep a POST a POST after a 302",
            doc: "Sends a POST again as a POST, with its body, after a 302. By default it becomes a GET, as in \
                  browsers (RFC 9110 section 15.4).",
            example: "haul --post302 -d a=b https://example.com/form",
            see_also: "location request",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.redirects.post302 = value.is_on();
        Ok(())
    }
}
