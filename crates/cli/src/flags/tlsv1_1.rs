//! The option `--tlsv1.1`: uses TLS 1.2 or newer, because haul supports no older version.

use super::prelude::*;
use haul::net::tls::TlsVersion;

pub(super) struct Tlsv11Flag;

impl FlagDefinition for Tlsv11Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tlsv1.1",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Tls,
            important: false,
            help: "Use TLS 1.2 or newer",
            doc: "Accepted for compatibility with curl. haul speaks nothing older than TLS 1.2 (RFC 8996), so this is \
                  the same as --tlsv1.2.",
            example: "haul --tlsv1.1 https://example.com/",
            see_also: "tlsv1.2",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().tls.options.min_version = TlsVersion::V1_2;
        Ok(())
    }
}
