//! The option `--get` (`-G`): sends the data of `--data` in the query of a GET request.

use super::prelude::*;

pub(super) struct GetFlag;

impl FlagDefinition for GetFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "get",
            short: Some('G'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Send data in the URL of a GET",
            doc: "Appends the data of --data and its variants to the query of each URL and sends a GET, or a HEAD \
                  with -I. Bytes that are not allowed in a URL are percent-encoded.",
            example: "haul -G -d q=haul https://example.com/search",
            see_also: "data data-urlencode url-query",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().get = value.is_on();
        Ok(())
    }
}
