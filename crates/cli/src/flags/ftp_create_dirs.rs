//! `--ftp-create-dirs`.

use super::prelude::*;

pub(super) struct FtpCreateDirs;

impl Flag for FtpCreateDirs {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ftp-create-dirs",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about uploads by FTP.",
            example: "haul --ftp-create-dirs https://example.com/",
            see_also: &["create-dirs"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
