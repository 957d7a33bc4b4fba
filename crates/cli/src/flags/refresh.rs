//! The option `--refresh`: fetches only resources that have changed since the job fetched them.

use super::prelude::*;

pub(super) struct RefreshFlag;

impl FlagDefinition for RefreshFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "refresh",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Fetch what has changed since the job fetched it",
            doc: "Requests every URL of a job (--job) again, on the condition that it has changed: with If-None-Match \
                  and If-Modified-Since, if the job knows an entity tag or a date and the file is still there. A file \
                  that has not changed stays as it is; a changed one is replaced as a whole. A file whose URL is gone \
                  (404, 410) stays, and \"haul job list --vanished FILE\" names it. With --then, the pages of all \
                  stages are requested, and new links are followed. A refresh that was killed goes on with \
                  --refresh. Records, bodies and values on standard output are added to the earlier ones.",
            example: "haul --job mirror.job --refresh",
            see_also: "job time-cond etag-compare",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.refresh = value.is_on();
        Ok(())
    }
}
