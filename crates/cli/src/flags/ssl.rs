//! `--ssl`.

use super::prelude::*;

pub(super) struct Ssl;

impl Flag for Ssl {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP and mail; of a URL the scheme decides.",
            example: "haul --ssl https://example.com/",
            see_also: &["ssl-reqd"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
