//! `-J`, `--remote-header-name`.

use super::prelude::*;

pub(super) struct RemoteHeaderName;

impl Flag for RemoteHeaderName {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "remote-header-name",
            short: Some('J'),
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Take the file name that the server gives",
            doc: "With -O, takes the name of the file from Content-Disposition (RFC 6266) where the reply \
                  has one, without any directory in it; else from where redirects led, else from the URL. \
                  A name that the server chose replaces no file: if there is one, the transfer fails with \
                  23, but for --clobber, --no-clobber and --skip-existing.",
            example: "haul -O -J https://example.com/download?id=7",
            see_also: &["remote-name", "clobber", "skip-existing"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().remote_header_name = value.on();
        Ok(())
    }
}
