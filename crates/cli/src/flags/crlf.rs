//! `--crlf`.

use super::prelude::*;

pub(super) struct Crlf;

impl Flag for Crlf {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "crlf",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about uploads by FTP and SMTP.",
            example: "haul --crlf https://example.com/",
            see_also: &["upload-file"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
