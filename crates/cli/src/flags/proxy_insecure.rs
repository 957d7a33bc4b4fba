//! The option `--proxy-insecure`: does not verify the certificate of the proxy.

use super::prelude::*;

pub(super) struct ProxyInsecureFlag;

impl FlagDefinition for ProxyInsecureFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-insecure",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Accept any certificate of the proxy",
            doc: "Like --insecure, for an https proxy: whoever controls the network can read and change everything \
                  that goes through the proxy unencrypted.",
            example: "haul --proxy-insecure -x https://proxy.example https://example.com/",
            see_also: "insecure proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.options.verify = !value.is_on();
        Ok(())
    }
}
