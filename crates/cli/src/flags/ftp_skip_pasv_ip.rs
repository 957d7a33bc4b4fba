//! `--ftp-skip-pasv-ip`.

use super::prelude::*;

pub(super) struct FtpSkipPasvIp;

impl Flag for FtpSkipPasvIp {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ftp-skip-pasv-ip",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP.",
            example: "haul --ftp-skip-pasv-ip https://example.com/",
            see_also: &["ftp-pasv"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
