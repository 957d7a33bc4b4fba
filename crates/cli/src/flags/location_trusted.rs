//! `--location-trusted`.

use super::location::override_follow;
use super::prelude::*;

pub(super) struct LocationTrusted;

impl Flag for LocationTrusted {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "location-trusted",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Follow redirects and send secrets along",
            doc: "Like --location, but sends credentials, -b and Authorization to every host that a redirect names. \
                  Each server on the way learns them and can choose the next. They still do not go from https to \
                  http.",
            example: "haul --location-trusted -u me:secret https://example.com/",
            see_also: &["location", "user"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        override_follow(args);
        let redirect = &mut args.transfer().redirect;
        redirect.trusted = value.on();
        redirect.follow |= value.on();
        Ok(())
    }
}
