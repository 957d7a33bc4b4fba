//! `--xattr`.

use super::prelude::*;

pub(super) struct Xattr;

impl Flag for Xattr {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "xattr",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Note where a file is from",
            doc: "Stores the URL and the type of a body in the extended attributes of its file: \
                  user.xdg.origin.url, user.mime_type and their like.",
            example: "haul --xattr -O https://example.com/file",
            see_also: &["remote-time"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().xattr = value.on();
        Ok(())
    }
}
