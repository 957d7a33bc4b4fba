//! `--proxy-pass`.

use super::prelude::*;
use crate::plan::Secret;

pub(super) struct ProxyPass;

impl Flag for ProxyPass {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proxy-pass",
            short: None,
            takes: Takes::Value("phrase"),
            category: Category::Proxy,
            important: false,
            help: "Passphrase of the key (proxy)",
            doc: "Passphrase of the encrypted key of --proxy-key or --proxy-cert. Other users of the machine may see \
                  the command line: a config file (-K) hides it.",
            example: "haul --proxy-pass secret --proxy-cert me.pem -x https://proxy.example https://example.com/",
            see_also: &["proxy-cert", "proxy-key"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.proxy().tls.client.passphrase = Some(Secret::new(value.bytes()));
        Ok(())
    }
}
