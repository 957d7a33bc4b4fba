//! The option `--with-url`: prints the URL of its page before each extracted value.

use super::prelude::*;

pub(super) struct WithUrlFlag;

impl FlagDefinition for WithUrlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "with-url",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Print the URL before each value",
            doc: "Prints the URL of the page and a tab before each value of the last stage, as grep -H prints the file \
                  name. A URL has no tab, so the first tab of a line is the separator. The URL is the one that was \
                  given, without user and password. With --csv it is the first column, \"url\".",
            example: "haul --with-url --extract '<h1>([^<]+)' 'https://example.com/[1-9]'",
            see_also: "csv extract jsonl",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.with_url = value.is_on();
        Ok(())
    }
}
