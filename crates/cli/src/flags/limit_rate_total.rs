//! The option `--limit-rate-total`: limits the transfer rate of the whole run, in bytes per second.

use super::prelude::*;

pub(super) struct LimitRateTotalFlag;

impl FlagDefinition for LimitRateTotalFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "limit-rate-total",
            short: None,
            syntax: FlagSyntax::Value("speed"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum transfer rate of a run",
            doc: "Maximum rate in bytes a second over all transfers of the run together, in each direction. K, M and G \
                  (powers of 1024) may follow the number. 0, the default, means no limit. --limit-rate limits each \
                  transfer.",
            example: "haul --limit-rate-total 10M --input-file urls.txt -O",
            see_also: "limit-rate rate",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.size()?;
        args.global.limit_rate_total = (limit > 0).then_some(limit);
        Ok(())
    }
}
