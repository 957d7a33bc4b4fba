//! The option `--warc-secrets`: keeps credentials in the archive of `--warc`.

use super::prelude::*;

pub(super) struct WarcSecretsFlag;

impl FlagDefinition for WarcSecretsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "warc-secrets",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Keep credentials in the archive",
            doc: "Keeps the fields Authorization, Proxy-Authorization and Cookie, and those of API keys, in the request \
                  records of --warc. Only the owner may read the files then (0600). By default, these fields are left \
                  out. User and password are never part of a URL in the archive.",
            example: "haul -n --warc mine.warc --warc-secrets https://example.com/",
            see_also: "warc",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.warc.keeps_secrets = value.is_on();
        Ok(())
    }
}
