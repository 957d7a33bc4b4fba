//! The option `--crlfile`: refuses certificates that a list in this file revokes.

use super::prelude::*;

pub(super) struct CrlfileFlag;

impl FlagDefinition for CrlfileFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "crlfile",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Tls,
            important: false,
            help: "Refuse certificates revoked in this list",
            doc: "Refuses certificates that a revocation list in FILE (PEM) names.",
            example: "haul --crlfile revoked.pem https://example.com/",
            see_also: "proxy-crlfile",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.crl_file = Some(value.path()?);
        Ok(())
    }
}
