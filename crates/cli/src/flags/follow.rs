//! The option `--follow`: follows redirects, and changes the method of `--request` only if the
//! status demands it.

use super::prelude::*;

pub(super) struct FollowFlag;

impl FlagDefinition for FollowFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "follow",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Follow redirects, which may change the method",
            doc: "Follows redirects; a method given by --request is kept only where the status calls for it.",
            example: "haul --follow -X POST -d x https://example.com/",
            see_also: "location request",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if args.global.persona.is_curl() && args.transfer().options.redirects.follow && !args.request().follow {
            args.warn("--follow overrides --location");
        }
        args.transfer().options.redirects.follow = value.is_on();
        args.request().follow = value.is_on();
        Ok(())
    }
}
