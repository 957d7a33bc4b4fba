//! The option `--ignore-content-length`: ignores `Content-Length`, and reads until the server
//! closes the connection.

use super::prelude::*;

pub(super) struct IgnoreContentLengthFlag;

impl FlagDefinition for IgnoreContentLengthFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ignore-content-length",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Read until the server closes",
            doc: "Ignores the announced length: the body is whatever arrives until the server closes the connection. \
                  A truncated body then looks complete.",
            example: "haul --ignore-content-length http://example.com/",
            see_also: "raw",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.deviations.ignore_length = value.is_on();
        Ok(())
    }
}
