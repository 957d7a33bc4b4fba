//! `--checksum`.

use super::prelude::*;
use crate::checksum::BadChecksum;

pub(super) struct Checksum;

impl Flag for Checksum {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "checksum",
            short: None,
            takes: Takes::Value("algorithm:hex"),
            category: Category::Output,
            important: false,
            help: "Compare a body with its checksum",
            doc: "Computes the checksum of the body while it is written, and fails if it is another than \
                  the one given: the file does not get its name then. Either ALGORITHM:HEX, with sha256, \
                  sha384, sha512, or sha1 for what has nothing better (it is broken: it finds damage, not \
                  malice), for one URL; or the URL (http, https) or file name of a list as of sha256sum, \
                  in which the file is looked up by its name. The checksum is of the whole file, also \
                  where -C adds to it, and of what is written: with --compressed, of the decoded body. Not \
                  with --extract.",
            example: "haul --checksum https://example.com/SHA256SUMS -O https://example.com/file.iso",
            see_also: &["remote-name", "output"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let checksum = value.content()?.parse().map_err(|flaw: BadChecksum| Reason::bad_use(flaw.to_string()))?;
        args.group().checksum = Some(checksum);
        Ok(())
    }
}
