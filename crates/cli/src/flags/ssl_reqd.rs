//! `--ssl-reqd`.

use super::prelude::*;

pub(super) struct SslReqd;

impl Flag for SslReqd {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ssl-reqd",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It is about connections of FTP and mail; of a URL the scheme decides.",
            example: "haul --ssl-reqd https://example.com/",
            see_also: &["ssl", "proto"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
