//! `--tr-encoding`.

use super::prelude::*;

pub(super) struct TrEncoding;

impl Flag for TrEncoding {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tr-encoding",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Ask for a compressed transfer",
            doc: "Sends \"TE: gzip\", as curl does. No server in use compresses transfers rather \
                  than content; should one do so, the reply is refused, for haul undoes content \
                  codings only.",
            example: "haul --tr-encoding https://example.com/",
            see_also: &["compressed"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().tr_encoding = value.on();
        Ok(())
    }
}
