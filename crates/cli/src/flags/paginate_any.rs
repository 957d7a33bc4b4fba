//! The option `--paginate-any`: lets a listing continue on another server.

use super::prelude::*;

pub(super) struct PaginateAnyFlag;

impl FlagDefinition for PaginateAnyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "paginate-any",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Let listings lead to other servers",
            doc: "Lets the next page of a listing have any origin. Without it, the scheme, host and port must be those \
                  of its page or of the first URL; otherwise the listing fails with 3. Credentials go to the origin of \
                  the first URL only. Hazard: a page chooses which servers are asked, also in your own network.",
            example: "haul --paginate link --paginate-any https://api.example.com/items",
            see_also: "paginate paginate-max",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().pagination.any_origin = value.is_on();
        Ok(())
    }
}
