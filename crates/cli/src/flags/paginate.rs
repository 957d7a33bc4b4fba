//! The option `--paginate`: fetches the further pages of a listing by their links.

use super::prelude::*;
use crate::parsed_args::ParsedPageLink;

pub(super) struct PaginateFlag;

impl FlagDefinition for PaginateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "paginate",
            short: None,
            syntax: FlagSyntax::Value("link"),
            category: HelpCategory::Extract,
            important: true,
            help: "Follow the links to the next pages",
            doc: "Fetches the next page of a listing after each page, as long as there is one. If LINK is the word \
                  link, the next page is the first link with the relation next in the Link header fields of the \
                  response (RFC 8288). Otherwise LINK is a CSS selector with an attribute, as for --select, such as \
                  a[rel=next]@href (the element link is written link[rel=next]@href): the first URL that it selects in \
                  the HTML or XML page. With --paginate-query, the selected value becomes the value of that query \
                  parameter, and may also be a text. Each URL of the stage is the first page of a listing. Pages of \
                  one listing come one after the other, those of several listings side by side; output has the order \
                  of the first pages. Each page is requested once in a listing, and a loop ends it with a warning. See \
                  --paginate-any and --paginate-max. With -o, {page} stands for the number of the page. Belongs to the \
                  stage opened by the last --then.",
            example: "haul --paginate 'a[rel=next]@href' --select h2 https://example.com/news",
            see_also: "paginate-json paginate-query paginate-any paginate-max select",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().pagination.link = Some(match value.content()? {
            "link" => ParsedPageLink::HeaderField,
            css => ParsedPageLink::Element(css.to_owned()),
        });
        Ok(())
    }
}
