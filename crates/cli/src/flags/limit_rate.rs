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
            help: "Bytes a second of a transfer at most",
            doc: "Most bytes of the body a second, over all connections of the transfer together. K, M and \
                  G (of 1024) may follow the number. 0 is no limit, the default.",
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
