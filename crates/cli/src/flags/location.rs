//! The option `--location` (`-L`): follows redirects. On by default, except for the curl persona.

use super::prelude::*;

pub(super) struct LocationFlag;

impl FlagDefinition for LocationFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "location",
            short: Some('L'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: true,
            help: "Follow redirects (default)",
            doc: "Follows up to --max-redirs redirects. This is the default; --no-location delivers the redirecting \
                  reply itself. Credentials and cookies do not follow to another scheme, host or port.",
            example: "haul --no-location https://example.com/",
            see_also: "max-redirs",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        override_follow(args);
        args.transfer().options.redirects.follow = value.is_on();
        Ok(())
    }
}

/// Cancels an earlier `--follow`, because `--location` or `--location-trusted`, which comes later,
/// overrides it. If haul acts as curl, adds a warning.
pub(super) fn override_follow(args: &mut ParsedArgs) {
    if std::mem::take(&mut args.request().follow) && args.global.persona.is_curl() {
        args.warn("--location overrides --follow");
    }
}
