//! `--cert-type`.

use super::prelude::*;
use crate::plan::CertFormat;

pub(super) struct CertType;

impl Flag for CertType {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "cert-type",
            short: None,
            takes: Takes::Value("type"),
            category: Category::Tls,
            important: false,
            help: "Format of the client certificate",
            doc: "Format of --cert: PEM, which is the default, or DER. P12, ENG and PROV are not supported. haul \
                  finds out which of the two a file is in.",
            example: "haul --cert-type DER --cert me.der --key me.key https://example.com/",
            see_also: &["cert", "key-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.client.format = format(value)?;
        Ok(())
    }
}

/// PEM or DER.
pub(super) fn format(value: FlagValue<'_>) -> Result<CertFormat, Reason> {
    match value.content()?.to_ascii_uppercase().as_str() {
        "PEM" => Ok(CertFormat::Pem),
        "DER" => Ok(CertFormat::Der),
        _ => Err(Reason::bad_use("PEM and DER are supported")),
    }
}
