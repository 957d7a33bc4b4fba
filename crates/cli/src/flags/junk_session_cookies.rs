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
            help: "Leave session cookies of a file out",
            doc: "Cookies without an end, which a browser forgets when it is closed, are not taken from \
                  the files of --cookie.",
            example: "haul -j -b jar https://example.com/",
            see_also: &["cookie", "cookie-jar"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().cookies.junk_session = value.on();
        Ok(())
    }
}
