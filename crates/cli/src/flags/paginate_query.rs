//! The option `--paginate-query`: fetches the further pages of a listing by incrementing a number
//! in the query.

use super::prelude::*;

pub(super) struct PaginateQueryFlag;

impl FlagDefinition for PaginateQueryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "paginate-query",
            short: None,
            syntax: FlagSyntax::Value("name[:step]"),
            category: HelpCategory::Extract,
            important: true,
            help: "Count the pages in the query",
            doc: "As --paginate, but the query parameter NAME of the URL is counted up: by 1, or by STEP for parameters \
                  that count entries (offset:100). It begins at the number in the URL. A URL without the parameter is \
                  page 1, or offset 0 with a STEP. The listing ends at a page that does not exist (404), that is empty, \
                  or that has the same content as the one before it. With --extract, a page without values is empty; \
                  otherwise one without content, or with [], {} or null. See --paginate and --paginate-json for \
                  parameters that take a value from the page before.",
            example: "haul --paginate-query page 'https://api.example.com/items?page=1'",
            see_also: "paginate paginate-json",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().pagination.query = Some(value.content()?.to_owned());
        Ok(())
    }
}
