//! The option `--data-urlencode`: sends this data as the content of a POST, percent-encoded.

use super::prelude::*;
use crate::parsed_args::ParsedDataOption;

pub(super) struct DataUrlencodeFlag;

impl FlagDefinition for DataUrlencodeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "data-urlencode",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send data in a POST, percent-encoded",
            doc: "Like --data, but encodes the content as forms are: \"content\", \"=content\", \"name=content\", \
                  \"@file\" or \"name@file\". The name is sent as given; a space becomes \"+\".",
            example: "haul --data-urlencode 'q=a b&c' https://example.com/search",
            see_also: "data url-query get",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().data.push(ParsedDataOption::url_encode(value.bytes())?);
        Ok(())
    }
}
