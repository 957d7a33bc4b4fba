//! The option `--basic`: allows Basic authentication.

use super::header_value_parser::NONE;
use super::prelude::*;

pub(super) struct BasicFlag;

impl FlagDefinition for BasicFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "basic",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Allow Basic authentication",
            doc: "Sends user and password unencrypted (RFC 7617), so that only https protects them. This is the \
                  default for -u, without waiting for a challenge. --no-basic forbids it.",
            example: "haul --basic -u me:secret https://example.com/",
            see_also: "user anyauth proxy-basic",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().allowed.get_or_insert(NONE).basic = value.is_on();
        Ok(())
    }
}
