//! The option `--expect100-timeout`: sets the longest wait for a `100 Continue` response.

use super::prelude::*;

pub(super) struct Expect100TimeoutFlag;

impl FlagDefinition for Expect100TimeoutFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "expect100-timeout",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Post,
            important: false,
            help: "How long to wait for 100 Continue",
            doc: "A large body is announced with \"Expect: 100-continue\" and sent when the server agrees, or when \
                  this time has passed (RFC 9110 section 10.1.1). In decimal seconds, default 1. \"-H Expect:\" turns \
                  the announcement off.",
            example: "haul --expect100-timeout 2.5 -T big.iso https://example.com/inbox/",
            see_also: "upload-file connect-timeout",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.expect_timeout = value.seconds_for(args.global.persona)?;
        Ok(())
    }
}
