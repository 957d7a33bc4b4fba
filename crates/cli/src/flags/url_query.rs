//! The option `--url-query`: adds data to the query of the URL.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct UrlQueryFlag;

impl FlagDefinition for UrlQueryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "url-query",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Http,
            important: false,
            help: "Add to the query of the URL",
            doc: "Appends DATA to the query of each URL, in the five forms of --data-urlencode and encoded the same \
                  way; \"+text\" is taken as given. URLs of redirects are not changed. May be repeated.",
            example: "haul --url-query 'q=a b' https://example.com/search",
            see_also: "get data-urlencode",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = value.bytes();
        let data = match text.strip_prefix(b"+") {
            Some(raw) => ParsedDataOption { kind: DataOptionKind::Raw, name: None, text: TextOrFile::Text(raw.into()) },
            None => ParsedDataOption::url_encode(text)?,
        };
        args.request().query.push(data);
        Ok(())
    }
}
