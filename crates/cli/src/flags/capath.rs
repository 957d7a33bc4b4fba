//! The option `--capath`: trusts the CA certificates in this directory.

use super::prelude::*;

pub(super) struct CapathFlag;

impl FlagDefinition for CapathFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "capath",
            short: None,
            syntax: FlagSyntax::Value("dir"),
            category: HelpCategory::Tls,
            important: false,
            help: "Trust the CA certificates in this directory",
            doc: "Trusts the CA certificates (PEM files) in DIR instead of the system's.",
            example: "haul --capath /etc/ssl/certs https://example.com/",
            see_also: "proxy-capath",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.ca_path = Some(value.path()?);
        Ok(())
    }
}
