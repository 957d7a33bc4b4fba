//! `-q`, `--disable`.

use super::prelude::*;

pub(super) struct Disable;

impl Flag for Disable {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "disable",
            short: Some('q'),
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Read no default config file",
            doc: "As the first option, in curl's place: does not read .curlrc. haul itself reads no default config \
                  file, so there is nothing to disable.",
            example: "haul -q https://example.com/",
            see_also: &["config"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
