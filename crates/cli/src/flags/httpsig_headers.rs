//! The option `--httpsig-headers`: the parts of a request that its signature covers.

use super::prelude::*;

pub(super) struct HttpsigHeadersFlag;

impl FlagDefinition for HttpsigHeadersFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "httpsig-headers",
            short: None,
            syntax: FlagSyntax::Value("list"),
            category: HelpCategory::Auth,
            important: false,
            help: "The parts of a request to sign",
            doc: "Sets the parts that the signature of --httpsig-key covers, separated by blanks: \"method\", \
                  \"authority\", \"path\", \"query\", and names of header fields with a colon at the end. Fields \
                  are those of -H; those that haul adds are not signed.",
            example: "haul --httpsig-headers 'method path content-type:' -H 'Content-Type: text/plain' --httpsig-key @key.hex --httpsig-keyid me https://example.com/",
            see_also: "httpsig-key header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().httpsig.components = Some(value.text()?.to_owned());
        Ok(())
    }
}
