//! The option `--ciphers`: sets the cipher suites of TLS 1.2.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct CiphersFlag;

impl FlagDefinition for CiphersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ciphers",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Tls,
            important: false,
            help: "Offer these cipher suites",
            doc: "Offers these TLS 1.2 cipher suites, by their OpenSSL names, separated by colons. Unknown names are \
                  skipped; if none is left, haul exits with 59.",
            example: "haul --ciphers ECDHE-RSA-AES128-GCM-SHA256 https://example.com/",
            see_also: "proxy-ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.tls12_ciphers = Some(split_names(value.content()?));
        Ok(())
    }
}
