//! `--proxy-cert`.

use super::prelude::*;

pub(super) struct ProxyCert;

impl Flag for ProxyCert {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-cert",
            short: None,
            takes: Takes::Value("certificate[:password]"),
            category: Category::Proxy,
            important: false,
            help: "Show this client certificate to the proxy",
            doc: "Like --cert, for an https proxy.",
            example: "haul --proxy-cert me.pem --proxy-key me.key -x https://proxy.example https://example.com/",
            see_also: &["proxy-key", "proxy-pass", "proxy-cert-type"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let (path, passphrase) = super::cert::split(value.bytes())?;
        let client = &mut args.proxy().tls.client;
        client.certificate = Some(path);
        if passphrase.is_some() {
            client.passphrase = passphrase;
        }
        Ok(())
    }
}
