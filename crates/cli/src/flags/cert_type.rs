//! The option `--cert-type`: sets the format of the client certificate, PEM or DER.

use super::prelude::*;
use crate::plan::CertFormat;

pub(super) struct CertTypeFlag;

impl FlagDefinition for CertTypeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cert-type",
            short: None,
            syntax: FlagSyntax::Value("type"),
            category: HelpCategory::Tls,
            important: false,
            help: "Format of the client certificate",
            doc: "Format of --cert: PEM, which is the default, DER or P12 (PKCS#12, with the key). ENG and PROV are \
                  not supported. haul finds out which of the three a file is in.",
            example: "haul --cert-type P12 --cert me.p12 --pass SECRET https://example.com/",
            see_also: "cert key-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.client.format = format(value)?;
        Ok(())
    }
}

/// Parses the format of a certificate, ignoring case.
pub(super) fn format(value: FlagValue<'_>) -> Result<CertFormat, UsageErrorReason> {
    match value.content()? {
        text if text.eq_ignore_ascii_case("P12") => Ok(CertFormat::P12),
        _ => key_format(value).map_err(|_| UsageErrorReason::bad_use("PEM, DER and P12 are supported")),
    }
}

/// Parses the format of a key, ignoring case.
pub(super) fn key_format(value: FlagValue<'_>) -> Result<CertFormat, UsageErrorReason> {
    match value.content()?.to_ascii_uppercase().as_str() {
        "PEM" => Ok(CertFormat::Pem),
        "DER" => Ok(CertFormat::Der),
        _ => Err(UsageErrorReason::bad_use("PEM and DER are supported")),
    }
}
