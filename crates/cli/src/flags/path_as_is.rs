//! `--path-as-is`.

use super::prelude::*;

pub(super) struct PathAsIs;

impl Flag for PathAsIs {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "path-as-is",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Do not resolve \"..\" in paths",
            doc: "Sends \"/./\" and \"/../\" in the path of a URL as given, instead of resolving them first.",
            example: "haul --path-as-is https://example.com/../../etc/passwd",
            see_also: &["globoff"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().path_as_is = value.on();
        Ok(())
    }
}
