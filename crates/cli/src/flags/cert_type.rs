//! The option `--cert-type`: sets the format of the client certificate, PEM or DER.

use super::prelude::*;
use crate::plan::CertFormat;

pub(super) struct CertTypeFlag;

impl Flag for CertTypeFlag {
    fn spec(&self) -> &'static FlagSpec {
        &FlagSpec {
            long: "cert-type",
            short: None,
            syntax: FlagSyntax::Value("type"),
            category: HelpCategory::Tls,
            important: false,
            help: "Format of the client certificate",
            doc: "Format of --cert: PEM, which is the default, or DER. P12, ENG and PROV are not supported. haul \
                  finds out which of the two a file is in.",
            example: "haul --cert-type DER --cert me.der --key me.key https://example.com/",
            see_also: &["cert", "key-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.client.format = format(value)?;
        Ok(())
    }
}

/// Parses `PEM` or `DER`, ignoring case.
pub(super) fn format(value: FlagValue<'_>) -> Result<CertFormat, UsageErrorReason> {
    match value.content()?.to_ascii_uppercase().as_str() {
        "PEM" => Ok(CertFormat::Pem),
        "DER" => Ok(CertFormat::Der),
        _ => Err(UsageErrorReason::bad_use("PEM and DER are supported")),
    }
}
