//! The option `--httpsig-keyid`: the name of the key that signs requests.

use super::prelude::*;

pub(super) struct HttpsigKeyidFlag;

impl FlagDefinition for HttpsigKeyidFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "httpsig-keyid",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Auth,
            important: false,
            help: "The name of the key that signs requests",
            doc: "Names the key of --httpsig-key, so that the server finds the one to verify the signature with.",
            example: "haul --httpsig-key @key.hex --httpsig-keyid me https://example.com/",
            see_also: "httpsig-key",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().httpsig.key_id = Some(value.text()?.to_owned());
        Ok(())
    }
}
