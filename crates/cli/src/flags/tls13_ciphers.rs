//! The option `--tls13-ciphers`: sets the cipher suites of TLS 1.3.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct Tls13CiphersFlag;

impl FlagDefinition for Tls13CiphersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tls13-ciphers",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Tls,
            important: false,
            help: "Offer these cipher suites of TLS 1.3",
            doc: "Offers these TLS 1.3 cipher suites, separated by colons.",
            example: "haul --tls13-ciphers TLS_AES_128_GCM_SHA256 https://example.com/",
            see_also: "proxy-tls13-ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.tls13_ciphers = Some(split_names(value.content()?));
        Ok(())
    }
}
