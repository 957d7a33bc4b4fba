//! `--limit-rate`.

use super::prelude::*;

pub(super) struct LimitRate;

impl Flag for LimitRate {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "limit-rate",
            short: None,
            takes: Takes::Value("speed"),
            category: Category::Limits,
            important: false,
            help: "Maximum transfer rate of a body",
            doc: "Maximum rate in bytes a second, over all connections of a transfer together. K, M and G (powers of \
                  1024) may follow the number. 0, the default, means no limit.",
            example: "haul --limit-rate 2M -O https://example.com/file.tar.gz",
            see_also: &["speed-limit", "split"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let limit = value.size()?;
        args.transfer().limit_rate = (limit > 0).then_some(limit);
        Ok(())
    }
}
