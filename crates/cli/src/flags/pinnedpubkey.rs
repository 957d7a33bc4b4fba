//! The option `--pinnedpubkey`: accepts only servers with one of these public keys.

use super::prelude::*;

pub(super) struct PinnedpubkeyFlag;

impl FlagDefinition for PinnedpubkeyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "pinnedpubkey",
            short: None,
            syntax: FlagSyntax::Value("hashes"),
            category: HelpCategory::Tls,
            important: false,
            help: "Accept this public key only",
            doc: "Accepts the server only if its public key is the one in a file (PEM or DER), or has one of these \
                  SHA-256 hashes in base64: \"sha256//AAAA...=;sha256//BBBB...=\". Otherwise exits with 90.",
            example: "haul --pinnedpubkey key.pem https://example.com/",
            see_also: "proxy-pinnedpubkey",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.pins = Some(value.content()?.to_owned());
        Ok(())
    }
}
