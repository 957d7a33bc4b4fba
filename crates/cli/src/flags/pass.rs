//! The option `--pass`: sets the passphrase of the client certificate's private key.

use super::prelude::*;
use crate::plan::Secret;

pub(super) struct PassFlag;

impl FlagDefinition for PassFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "pass",
            short: None,
            syntax: FlagSyntax::Value("phrase"),
            category: HelpCategory::Tls,
            important: false,
            help: "Passphrase of the key",
            doc: "Passphrase of the encrypted key of --key or --cert. Other users of the machine may see the command \
                  line: a config file (-K) hides it.",
            example: "haul --pass secret --cert me.pem https://example.com/",
            see_also: "cert key",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if value.bytes().is_empty() && args.global.persona.is_curl() {
            return Err(UsageErrorReason::Blank);
        }
        args.transfer().tls.client.passphrase = Some(Secret::new(value.bytes()));
        Ok(())
    }
}
