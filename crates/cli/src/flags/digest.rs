//! The option `--digest`: allows Digest authentication.

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct DigestFlag;

impl FlagDefinition for DigestFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "digest",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Allow Digest authentication",
            doc: "Answers a Digest challenge (RFC 7616: MD5, SHA-256, SHA-512-256, their -sess variants, auth and \
                  auth-int), so that the password itself is not sent. Costs an extra request, whose reply is the \
                  challenge.",
            example: "haul --digest -u me:secret https://example.com/",
            see_also: "user anyauth proxy-digest",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().allowed.get_or_insert(NONE).digest = value.is_on();
        Ok(())
    }
}
