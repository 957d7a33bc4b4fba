//! The option `--proxy-pass`: sets the passphrase of the private key for the proxy.

use super::prelude::*;
use crate::plan::Secret;

pub(super) struct ProxyPassFlag;

impl FlagDefinition for ProxyPassFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-pass",
            short: None,
            syntax: FlagSyntax::Value("phrase"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Passphrase of the key (proxy)",
            doc: "Passphrase of the encrypted key of --proxy-key or --proxy-cert. Other users of the machine may see \
                  the command line: a config file (-K) hides it.",
            example: "haul --proxy-pass secret --proxy-cert me.pem -x https://proxy.example https://example.com/",
            see_also: "proxy-cert proxy-key",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.client.passphrase = Some(Secret::new(value.bytes()));
        Ok(())
    }
}
