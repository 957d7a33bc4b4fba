//! `--disallow-username-in-url`.

use super::prelude::*;

pub(super) struct DisallowUsernameInUrl;

impl Flag for DisallowUsernameInUrl {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "disallow-username-in-url",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Refuse URLs with a user name",
            doc: "Fails with 67 if a URL, or one that a redirect leads to, contains a user name.",
            example: "haul --disallow-username-in-url https://example.com/",
            see_also: &["user"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().no_user_in_url = value.on();
        Ok(())
    }
}
