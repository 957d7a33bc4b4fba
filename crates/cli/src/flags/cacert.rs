//! The option `--cacert`: trusts the CA certificates in this file.

use super::prelude::*;

pub(super) struct CacertFlag;

impl FlagDefinition for CacertFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cacert",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Tls,
            important: false,
            help: "Trust the CA certificates in this file",
            doc: "Verifies servers against the PEM certificates in FILE instead of the system's CA certificates. A \
                  later --then inherits it.",
            example: "haul --cacert ca.pem https://example.com/",
            see_also: "insecure",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.ca_file = Some(value.path()?);
        Ok(())
    }
}
