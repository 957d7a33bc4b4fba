//! The option `--url`: adds a URL, or for the curl persona a list of URLs.

use super::prelude::*;
use crate::url_sources;

pub(super) struct UrlFlag;

impl FlagDefinition for UrlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "url",
            short: None,
            syntax: FlagSyntax::Value("url"),
            category: HelpCategory::General,
            important: false,
            help: "A URL",
            doc: "The same as the URL alone; useful in config files. \"@FILE\" is a file with one URL a line (\"@-\" \
                  is standard input).",
            example: "haul --url https://example.com/",
            see_also: "config input-file",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = url_sources::to_text(value.bytes());
        match text.strip_prefix('@') {
            Some("") => return Err(UsageErrorReason::Blank),
            Some(file) => {
                // In curl, each URL of the file pairs with its own -o and -T.
                if args.global.persona.is_curl() {
                    args.list = Some(file.into());
                } else {
                    args.group().urls.push_input_file(file);
                }
            }
            None if text.is_empty() && args.global.persona.is_curl() => return Err(UsageErrorReason::Blank),
            None => args.group().urls.push_url(&text),
        }
        Ok(())
    }
}
