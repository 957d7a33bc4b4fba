//! `--tlsv1.2`.

use super::prelude::*;
use crate::plan::TlsVersion;

pub(super) struct Tlsv12;

impl Flag for Tlsv12 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tlsv1.2",
            short: None,
            takes: Takes::Once,
            category: Category::Tls,
            important: false,
            help: "Use TLS 1.2 or newer",
            doc: "Requires TLS 1.2 or newer. This is the default.",
            example: "haul --tlsv1.2 https://example.com/",
            see_also: &["tlsv1.3"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.transfer().tls.min_version = TlsVersion::V1_2;
        Ok(())
    }
}
