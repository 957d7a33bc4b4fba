//! `--ftp-pasv`.

use super::prelude::*;

pub(super) struct FtpPasv;

impl Flag for FtpPasv {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ftp-pasv",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP.",
            example: "haul --ftp-pasv https://example.com/",
            see_also: &["disable-epsv"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
