//! `-Z`, `--parallel`.

use super::prelude::*;

pub(super) struct Parallel;

impl Flag for Parallel {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "parallel",
            short: Some('Z'),
            takes: Takes::Switch,
            category: Category::Parallel,
            important: false,
            help: "Transfer in parallel (default)",
            doc: "Fetches many URLs at the same time and prints them in input order. This is the default; \
                  --no-parallel fetches one after the other.",
            example: "haul --no-parallel 'https://example.com/[1-9]'",
            see_also: &["parallel-max", "parallel-max-host", "unordered"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.parallel = value.on();
        Ok(())
    }
}
