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
            doc: "Asks for a compressed transfer (\"TE: gzip\", RFC 9110 section 10.1.4) and undoes what \
                  Transfer-Encoding names. Few servers do this; most compress the content instead (--compressed).",
            example: "haul --tr-encoding https://example.com/",
            see_also: &["compressed"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().liberties.codings = value.on();
        Ok(())
    }
}
