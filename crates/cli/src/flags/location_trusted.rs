//! The option `--location-trusted`: follows redirects, and sends credentials to other hosts too.

use super::location::override_follow;
use super::prelude::*;

pub(super) struct LocationTrustedFlag;

impl FlagDefinition for LocationTrustedFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "location-trusted",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Auth,
            important: false,
            help: "Follow redirects and send secrets along",
            doc: "Like --location, but sends credentials, -b and Authorization to every host that a redirect names. \
                  Each server on the way learns them and can choose the next. They still do not go from https to \
                  http.",
            example: "haul --location-trusted -u me:secret https://example.com/",
            see_also: "location user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        override_follow(args);
        let redirects = &mut args.transfer().options.redirects;
        redirects.location_trusted = value.is_on();
        redirects.follow |= value.is_on();
        Ok(())
    }
}
