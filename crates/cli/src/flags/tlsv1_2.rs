//! The option `--tlsv1.2`: uses TLS 1.2 or newer.

use super::prelude::*;
use haul::net::tls::TlsVersion;

pub(super) struct Tlsv12Flag;

impl FlagDefinition for Tlsv12Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tlsv1.2",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Tls,
            important: false,
            help: "Use TLS 1.2 or newer",
            doc: "Requires TLS 1.2 or newer. This is the default.",
            example: "haul --tlsv1.2 https://example.com/",
            see_also: "tlsv1.3",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().tls.options.min_version = TlsVersion::V1_2;
        Ok(())
    }
}
