//! The option `--anyauth`: allows every authentication scheme that haul supports.

use super::prelude::*;
use crate::build_plan::credentials::ANYAUTH_SCHEMES;

pub(super) struct AnyauthFlag;

impl FlagDefinition for AnyauthFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "anyauth",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Allow every authentication haul has",
            doc: "Waits for a challenge and answers the strongest scheme offered of Negotiate (see --negotiate), Digest \
                  and Basic. Without a Kerberos ticket, the next scheme is answered. Costs an extra request. A body \
                  that can be read only once, such as standard input, cannot be sent again.",
            example: "haul --anyauth -u me:secret https://example.com/",
            see_also: "user basic digest negotiate proxy-anyauth",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().allowed = value.is_on().then_some(ANYAUTH_SCHEMES);
        Ok(())
    }
}
