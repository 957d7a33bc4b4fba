//! The option `--proxy-cert`: names the file of the client certificate for the proxy.

use super::prelude::*;

pub(super) struct ProxyCertFlag;

impl FlagDefinition for ProxyCertFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-cert",
            short: None,
            syntax: FlagSyntax::Value("certificate[:password]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Show this client certificate to the proxy",
            doc: "Like --cert, for an https proxy.",
            example: "haul --proxy-cert me.pem --proxy-key me.key -x https://proxy.example https://example.com/",
            see_also: "proxy-key proxy-pass proxy-cert-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let (path, passphrase) = super::cert::split(value.bytes())?;
        let client = &mut args.proxy().tls.client;
        client.certificate = Some(path);
        if passphrase.is_some() {
            client.passphrase = passphrase;
        }
        Ok(())
    }
}
