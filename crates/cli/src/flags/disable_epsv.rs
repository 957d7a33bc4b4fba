//! `--disable-epsv`.

use super::prelude::*;

pub(super) struct DisableEpsv;

impl Flag for DisableEpsv {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "disable-epsv",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP.",
            example: "haul --disable-epsv https://example.com/",
            see_also: &["disable-eprt"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
