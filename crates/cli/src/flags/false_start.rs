//! `--false-start`.

use super::prelude::*;

pub(super) struct FalseStart;

impl Flag for FalseStart {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "false-start",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is ignored by curl too.",
            example: "haul --false-start https://example.com/",
            see_also: &["tlsv1.3"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
