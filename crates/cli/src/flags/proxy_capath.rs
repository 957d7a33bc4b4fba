//! The option `--proxy-capath`: trusts the CA certificates in this directory for the proxy.

use super::prelude::*;

pub(super) struct ProxyCapathFlag;

impl FlagDefinition for ProxyCapathFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-capath",
            short: None,
            syntax: FlagSyntax::Value("dir"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Trust the CA certificates in this directory (proxy)",
            doc: "Like --capath, for an https proxy.",
            example: "haul --proxy-capath /etc/ssl/certs -x https://proxy https://example.com/",
            see_also: "capath",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.ca_path = Some(value.path()?);
        Ok(())
    }
}
