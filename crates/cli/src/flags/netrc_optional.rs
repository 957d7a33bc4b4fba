//! `--netrc-optional`.

use super::prelude::*;

pub(super) struct NetrcOptional;

impl Flag for NetrcOptional {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "netrc-optional",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Take passwords from the URL or netrc",
            doc: "Like --netrc, but what the URL says takes precedence, and a missing file is not an error.",
            example: "haul --netrc-optional https://example.com/",
            see_also: &["netrc", "netrc-file"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().netrc_optional = value.on();
        Ok(())
    }
}
