//! The option `--key-type`: sets the format of the private key, PEM or DER.

use super::cert_type::key_format;
use super::prelude::*;

pub(super) struct KeyTypeFlag;

impl FlagDefinition for KeyTypeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "key-type",
            short: None,
            syntax: FlagSyntax::Value("type"),
            category: HelpCategory::Tls,
            important: false,
            help: "Format of the key",
            doc: "Format of --key: PEM, which is the default, or DER. ENG and PROV are not supported. haul finds out \
                  which of the two a file is in.",
            example: "haul --key-type DER --key me.der --cert me.pem https://example.com/",
            see_also: "key cert-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.client.key_format = key_format(value)?;
        Ok(())
    }
}
