//! `--pass`.

use super::prelude::*;
use crate::plan::Secret;

pub(super) struct Pass;

impl Flag for Pass {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "pass",
            short: None,
            takes: Takes::Value("phrase"),
            category: Category::Tls,
            important: false,
            help: "Passphrase of the key",
            doc: "Passphrase of the encrypted key of --key or --cert. Other users of the machine may see the command \
                  line: a config file (-K) hides it.",
            example: "haul --pass secret --cert me.pem https://example.com/",
            see_also: &["cert", "key"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        if value.bytes().is_empty() && args.global.persona.is_curl() {
            return Err(Reason::Blank);
        }
        args.transfer().tls.client.passphrase = Some(Secret::new(value.bytes()));
        Ok(())
    }
}
