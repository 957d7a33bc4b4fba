//! The option `--request` (`-X`): sets the request method.

use haul_policy::field_validation::is_token;

use super::prelude::*;

pub(super) struct RequestFlag;

impl FlagDefinition for RequestFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "request",
            short: Some('X'),
            syntax: FlagSyntax::Value("method"),
            category: HelpCategory::Http,
            important: false,
            help: "Use another method",
            doc: "Sends METHOD instead of GET, HEAD or POST, also after redirects. Nothing else changes, neither the \
                  body nor what reply is expected: for HEAD use -I.",
            example: "haul -X DELETE https://example.com/item/1",
            see_also: "head data",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let method = value.content()?;
        if !is_token(method.as_bytes()) {
            return Err(UsageErrorReason::bad_use("a method is a token, RFC 9110 section 9.1"));
        }
        args.request().method = Some(method.to_owned());
        Ok(())
    }
}
