//! The option `--sigalgs`: sets the signature algorithms of the TLS handshake.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct SigalgsFlag;

impl FlagDefinition for SigalgsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "sigalgs",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Tls,
            important: false,
            help: "Signature algorithms of the handshake",
            doc: "Offers these algorithms for the signature of the TLS handshake, separated by colons, preferred \
                  first: names of TLS 1.3 such as ecdsa_secp256r1_sha256, or key and hash such as RSA-PSS+SHA256. \
                  Known are ECDSA with SHA-256, -384 and -512, ed25519, RSA-PSS and RSA. Unknown names are ignored \
                  if one is known. The signatures of certificates are not restricted.",
            example: "haul --sigalgs ecdsa_secp256r1_sha256:ed25519 https://example.com/",
            see_also: "curves ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.signature_algorithms = Some(split_names(value.content()?));
        Ok(())
    }
}
