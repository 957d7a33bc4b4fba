//! The option `--paginate-max`: limits the number of pages of a listing.

use super::prelude::*;

pub(super) struct PaginateMaxFlag;

impl FlagDefinition for PaginateMaxFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "paginate-max",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Extract,
            important: false,
            help: "Maximum number of pages of a listing",
            doc: "Ends each listing of --paginate and its like after NUM pages, even if there are more. Without it, a \
                  listing with more than 1,000 pages fails with 47 after the 1,000th.",
            example: "haul --paginate link --paginate-max 5 https://api.example.com/items",
            see_also: "paginate paginate-any",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().pagination.max = Some(value.number_in(1, u64::MAX)?);
        Ok(())
    }
}
