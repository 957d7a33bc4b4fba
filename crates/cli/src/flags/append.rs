//! `-a`, `--append`.

use super::prelude::*;

pub(super) struct Append;

impl Flag for Append {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "append",
            short: Some('a'),
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about uploads by FTP.",
            example: "haul --append https://example.com/",
            see_also: &["upload-file"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
