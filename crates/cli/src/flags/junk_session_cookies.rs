//! The option `--junk-session-cookies` (`-j`): ignores the session cookies in cookie files.

use super::prelude::*;

pub(super) struct JunkSessionCookiesFlag;

impl FlagDefinition for JunkSessionCookiesFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "junk-session-cookies",
            short: Some('j'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Drop session cookies from cookie files",
            doc: "Drops session cookies (those without an expiry date) from the files of --cookie, as a browser does \
                  when it is closed.",
            example: "haul -j -b jar https://example.com/",
            see_also: "cookie cookie-jar",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().cookies.junk_session = value.is_on();
        Ok(())
    }
}
