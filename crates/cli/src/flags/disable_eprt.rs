//! `--disable-eprt`.

use super::prelude::*;

pub(super) struct DisableEprt;

impl Flag for DisableEprt {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "disable-eprt",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP.",
            example: "haul --disable-eprt https://example.com/",
            see_also: &["disable-epsv"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
