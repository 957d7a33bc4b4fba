//! `--basic`.

use super::field::NONE;
use super::prelude::*;

pub(super) struct Basic;

impl Flag for Basic {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "basic",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Allow Basic authentication",
            doc: "Sends user and password unencrypted (RFC 7617), so that only https protects them. This is the \
                  default for -u, without waiting for a challenge. --no-basic forbids it.",
            example: "haul --basic -u me:secret https://example.com/",
            see_also: &["user", "anyauth", "proxy-basic"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().allowed.get_or_insert(NONE).basic = value.on();
        Ok(())
    }
}
