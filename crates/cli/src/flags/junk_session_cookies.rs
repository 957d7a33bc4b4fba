//! `-j`, `--junk-session-cookies`.

use super::prelude::*;

pub(super) struct JunkSessionCookies;

impl Flag for JunkSessionCookies {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "junk-session-cookies",
            short: Some('j'),
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Drop session cookies from cookie files",
            doc: "Drops session cookies (those without an expiry date) from the files of --cookie, as a browser does \
                  when it is closed.",
            example: "haul -j -b jar https://example.com/",
            see_also: &["cookie", "cookie-jar"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().cookies.junk_session = value.on();
        Ok(())
    }
}
