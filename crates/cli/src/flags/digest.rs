//! `--digest`.

use super::field::NONE;
use super::prelude::*;

pub(super) struct Digest;

impl Flag for Digest {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "digest",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Allow Digest authentication",
            doc: "Answers a Digest challenge (RFC 7616: MD5, SHA-256, SHA-512-256, their -sess variants, auth and \
                  auth-int), so that the password itself is not sent. Costs an extra request, whose reply is the \
                  challenge.",
            example: "haul --digest -u me:secret https://example.com/",
            see_also: &["user", "anyauth", "proxy-digest"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().allowed.get_or_insert(NONE).digest = value.on();
        Ok(())
    }
}
