//! The option `--proxy-cacert`: trusts the CA certificates in this file for the proxy.

use super::prelude::*;

pub(super) struct ProxyCacertFlag;

impl FlagDefinition for ProxyCacertFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-cacert",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Trust these CA certificates for the proxy",
            doc: "Like --cacert, for an https proxy.",
            example: "haul --proxy-cacert ca.pem -x https://proxy.example https://example.com/",
            see_also: "cacert proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.ca_file = Some(value.path()?);
        Ok(())
    }
}
