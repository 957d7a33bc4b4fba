//! `--random-file`.

use super::prelude::*;

pub(super) struct RandomFile;

impl Flag for RandomFile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "random-file",
            short: None,
            takes: Takes::Value("file"),
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is ignored by curl too.",
            example: "haul --random-file x https://example.com/",
            see_also: &["insecure"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
