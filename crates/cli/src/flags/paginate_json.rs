//! The option `--paginate-json`: fetches the further pages of a listing by a value in each page.

use super::prelude::*;

pub(super) struct PaginateJsonFlag;

impl FlagDefinition for PaginateJsonFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "paginate-json",
            short: None,
            syntax: FlagSyntax::Value("jsonpath"),
            category: HelpCategory::Extract,
            important: true,
            help: "Follow a value in each JSON page",
            doc: "As --paginate, but the next page has the URL that JSONPATH (RFC 9535) selects in the page. A relative \
                  URL is resolved against that of the page. With --paginate-query, the value is a text or number that \
                  becomes the value of that query parameter, such as a cursor; the value true counts the parameter up. \
                  The listing ends at a page where the path selects nothing, null, false or an empty text.",
            example: "haul --paginate-json '$.next_cursor' --paginate-query cursor 'https://api.example.com/items'",
            see_also: "paginate paginate-query",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().pagination.json = Some(value.content()?.to_owned());
        Ok(())
    }
}
