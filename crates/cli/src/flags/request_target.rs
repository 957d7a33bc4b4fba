//! The option `--request-target`: sends this text as the request target.

use super::header_value_parser::refuse_controls;
use super::prelude::*;

pub(super) struct RequestTargetFlag;

impl FlagDefinition for RequestTargetFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "request-target",
            short: None,
            syntax: FlagSyntax::Value("path"),
            category: HelpCategory::Http,
            important: false,
            help: "Send this as the request target",
            doc: "Sends PATH in the request line instead of the path and query of the URL, for example \"*\" for \
                  OPTIONS.",
            example: "haul -X OPTIONS --request-target '*' https://example.com/",
            see_also: "request path-as-is",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let target = value.content()?;
        refuse_controls(target.as_bytes())?;
        args.request().request_target = Some(target.to_owned());
        Ok(())
    }
}
