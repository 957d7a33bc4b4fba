//! The option `--httpsig-key`: the key that signs requests by RFC 9421.

use crate::parsed_args::{ParsedSignatureKey, TextOrFile};
use crate::plan::Secret;

use super::prelude::*;

pub(super) struct HttpsigKeyFlag;

impl FlagDefinition for HttpsigKeyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "httpsig-key",
            short: None,
            syntax: FlagSyntax::Value("key/@file"),
            category: HelpCategory::Auth,
            important: false,
            help: "The key that signs requests",
            doc: "Signs each request with this key (RFC 9421), in hexadecimal digits: 32 bytes for ed25519, any \
                  number for hmac-sha256. \"@file\" reads it from a file, where other users do not see it. The key \
                  is blanked in the process list.",
            example: "haul --httpsig-key @key.hex --httpsig-keyid me https://example.com/",
            see_also: "httpsig-keyid httpsig-algo httpsig-headers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().httpsig.key = Some(match TextOrFile::new(value.bytes())? {
            TextOrFile::Text(text) => ParsedSignatureKey::Digits(Secret::new(text)),
            TextOrFile::File(path) => ParsedSignatureKey::File(path),
        });
        Ok(())
    }
}
