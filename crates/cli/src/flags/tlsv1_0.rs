//! `--tlsv1.0`.

use super::prelude::*;
use crate::plan::TlsVersion;

pub(super) struct Tlsv10;

impl Flag for Tlsv10 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tlsv1.0",
            short: None,
            takes: Takes::Once,
            category: Category::Tls,
            important: false,
            help: "Use TLS 1.2 or newer",
            doc: "Accepted for compatibility with curl. haul speaks nothing older than TLS 1.2 (RFC 8996), so this is \
                  the same as --tlsv1.2.",
            example: "haul --tlsv1.0 https://example.com/",
            see_also: &["tlsv1.2"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.transfer().tls.min_version = TlsVersion::V1_2;
        Ok(())
    }
}
