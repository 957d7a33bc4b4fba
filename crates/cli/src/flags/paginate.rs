//! The option `--paginate`: fetches the further pages of a listing by their links.

use super::prelude::*;

pub(super) struct PaginateFlag;

impl Flag for PaginateFlag {
    fn spec(&self) -> &'static FlagSpec {
        &FlagSpec {
            long: "paginate",
            short: None,
            syntax: FlagSyntax::Value("link"),
            category: HelpCategory::Extract,
            important: true,
            help: "Follow the links to the next pages",
            doc: "Fetches the next page of a listing after each page, as long as there is one. LINK is the word link: \
                  the first link with the relation next in the Link header fields of the response (RFC 8288). Each URL \
                  of the stage is the first page of a listing. Pages of one listing come one after the other, those of \
                  several listings side by side; output has the order of the first pages. Each page is requested once \
                  in a listing, and a loop ends it with a warning. See --paginate-any and --paginate-max. With -o, \
                  {page} stands for the number of the page. Belongs to the stage opened by the last --then.",
            example: "haul --paginate link 'https://api.example.com/items?per_page=100'",
            see_also: &["paginate-json", "paginate-query", "paginate-any", "paginate-max"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        match value.content()? {
            "link" => args.stage().pagination.by_link = true,
            _ => return Err(UsageErrorReason::bad_use("the word link follows it")),
        }
        Ok(())
    }
}
