//! `--tls-max`.

use super::prelude::*;
use crate::plan::TlsVersion;

pub(super) struct TlsMax;

impl Flag for TlsMax {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tls-max",
            short: None,
            takes: Takes::Value("version"),
            category: Category::Tls,
            important: false,
            help: "Use no newer TLS than this",
            doc: "The newest TLS version to use: \"1.2\", \"1.3\" or \"default\". 1.0 and 1.1 are refused, since no \
                  version would be left.",
            example: "haul --tls-max 1.2 https://example.com/",
            see_also: &["tlsv1.2", "tlsv1.3"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.max_version = match value.content()? {
            "default" | "1.3" => TlsVersion::V1_3,
            "1.2" => TlsVersion::V1_2,
            _ => return Err(Reason::bad_use("expected default, 1.2 or 1.3")),
        };
        Ok(())
    }
}
