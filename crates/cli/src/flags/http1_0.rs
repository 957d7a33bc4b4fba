//! `-0`, `--http1.0`.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http10;

impl Flag for Http10 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "http1.0",
            short: Some('0'),
            takes: Takes::Once,
            category: Category::Http,
            important: false,
            help: "Use HTTP/1.0",
            doc: "Sends HTTP/1.0 requests. A body of unknown length cannot be sent.",
            example: "haul -0 http://example.com/",
            see_also: &["http1.1"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.transfer().http_version = HttpVersion::Http10;
        Ok(())
    }
}
