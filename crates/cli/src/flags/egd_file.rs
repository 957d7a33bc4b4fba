//! `--egd-file`.

use super::prelude::*;

pub(super) struct EgdFile;

impl Flag for EgdFile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "egd-file",
            short: None,
            takes: Takes::Value("file"),
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is ignored by curl too.",
            example: "haul --egd-file x https://example.com/",
            see_also: &["insecure"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
