//! The option `--curves`: sets the groups for the TLS key exchange.

use super::prelude::*;
use crate::flag_value::split_names;

pub(super) struct CurvesFlag;

impl FlagDefinition for CurvesFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "curves",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Tls,
            important: false,
            help: "Use these groups for the key exchange",
            doc: "Offers these key exchange groups, separated by colons, preferred first: X25519, P-256 (prime256v1), \
                  P-384 (secp384r1), X25519MLKEM768.",
            example: "haul --curves X25519:P-256 https://example.com/",
            see_also: "ciphers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.groups = Some(split_names(value.content()?));
        Ok(())
    }
}
