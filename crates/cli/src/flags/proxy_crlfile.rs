//! The option `--proxy-crlfile`: refuses certificates of the proxy that a list in this file
//! revokes.

use super::prelude::*;

pub(super) struct ProxyCrlfileFlag;

impl FlagDefinition for ProxyCrlfileFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-crlfile",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Refuse certificates revoked in this list (proxy)",
            doc: "Like --crlfile, for an https proxy.",
            example: "haul --proxy-crlfile revoked.pem -x https://proxy https://example.com/",
            see_also: "crlfile",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.crl_file = Some(value.path()?);
        Ok(())
    }
}
