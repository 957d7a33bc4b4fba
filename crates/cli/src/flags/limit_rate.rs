//! The option `--limit-rate`: limits the transfer rate of a body, in bytes per second.

use super::prelude::*;

pub(super) struct LimitRateFlag;

impl FlagDefinition for LimitRateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "limit-rate",
            short: None,
            syntax: FlagSyntax::Value("speed"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum transfer rate of a body",
            doc: "Maximum rate in bytes a second, over all connections of a transfer together. K, M and G (powers of \
                  1024) may follow the number. 0, the default, means no limit.",
            example: "haul --limit-rate 2M -O https://example.com/file.tar.gz",
            see_also: "speed-limit split",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let limit = value.size()?;
        args.transfer().options.limit_rate = (limit > 0).then_some(limit);
        Ok(())
    }
}
