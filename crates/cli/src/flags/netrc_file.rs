//! `--netrc-file`.

use super::prelude::*;

pub(super) struct NetrcFile;

impl Flag for NetrcFile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "netrc-file",
            short: None,
            takes: Takes::Value("filename"),
            category: Category::Auth,
            important: false,
            help: "Take passwords from this netrc file",
            doc: "Like --netrc, or like --netrc-optional if that is given too, but reads FILE.",
            example: "haul --netrc-file passwords https://example.com/",
            see_also: &["netrc", "netrc-optional"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().netrc_file = Some(value.path()?);
        Ok(())
    }
}
