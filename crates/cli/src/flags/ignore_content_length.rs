//! `--ignore-content-length`.

use super::prelude::*;

pub(super) struct IgnoreContentLength;

impl Flag for IgnoreContentLength {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ignore-content-length",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Read until the server closes",
            doc: "Ignores the announced length: the body is whatever arrives until the server closes the connection. \
                  A truncated body then looks complete.",
            example: "haul --ignore-content-length http://example.com/",
            see_also: &["raw"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().liberties.ignore_length = value.on();
        Ok(())
    }
}
