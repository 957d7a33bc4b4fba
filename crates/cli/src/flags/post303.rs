//! The option `--post303`: does not change POST to GET after a 303 redirect.

use super::prelude::*;

pub(super) struct Post303Flag;

impl FlagDefinition for Post303Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "post303",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Keep a POST a POST after a 303",
            doc: "Sends a POST again as a POST, with its body, after a 303. By default it becomes a GET, as in \
                  browsers (RFC 9110 section 15.4).",
            example: "haul --post303 -d a=b https://example.com/form",
            see_also: "location request",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.redirects.post303 = value.is_on();
        Ok(())
    }
}
