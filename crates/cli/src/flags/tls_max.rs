//! The option `--tls-max`: sets the highest TLS version.

use super::prelude::*;
use haul::net::tls::TlsVersion;

pub(super) struct TlsMaxFlag;

impl FlagDefinition for TlsMaxFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tls-max",
            short: None,
            syntax: FlagSyntax::Value("version"),
            category: HelpCategory::Tls,
            important: false,
            help: "Use no newer TLS than this",
            doc: "The newest TLS version to use: \"1.2\", \"1.3\" or \"default\". 1.0 and 1.1 are refused, since no \
                  version would be left.",
            example: "haul --tls-max 1.2 https://example.com/",
            see_also: "tlsv1.2 tlsv1.3",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let max_version = match value.content()? {
            "default" | "1.3" => TlsVersion::V1_3,
            "1.2" => TlsVersion::V1_2,
            _ => return Err(UsageErrorReason::bad_use("expected default, 1.2 or 1.3")),
        };
        // Under haul's own name the error of the transfer names the remedy.
        if args.global.persona.is_curl() && max_version < args.transfer().tls.options.min_version {
            return Err(UsageErrorReason::bad_use("--tls-max set lower than minimum accepted version"));
        }
        args.transfer().tls.options.max_version = max_version;
        Ok(())
    }
}
