//! The option `--tlsv1.3`: uses TLS 1.3 or newer.

use super::prelude::*;
use haul::net::tls::TlsVersion;

pub(super) struct Tlsv13Flag;

impl FlagDefinition for Tlsv13Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tlsv1.3",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Tls,
            important: false,
            help: "Use TLS 1.3 or newer",
            doc: "Requires TLS 1.3 or newer.",
            example: "haul --tlsv1.3 https://example.com/",
            see_also: "tlsv1.2",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        if args.global.persona.is_curl() && args.transfer().tls.options.max_version < TlsVersion::V1_3 {
            return Err(UsageErrorReason::bad_use("Minimum TLS version set higher than max"));
        }
        args.transfer().tls.options.min_version = TlsVersion::V1_3;
        Ok(())
    }
}
