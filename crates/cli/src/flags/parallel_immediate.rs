//! `--parallel-immediate`.

use super::prelude::*;

pub(super) struct ParallelImmediate;

impl Flag for ParallelImmediate {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "parallel-immediate",
            short: None,
            takes: Takes::Switch,
            category: Category::Parallel,
            important: false,
            help: "Open connections at once",
            doc: "Opens a connection for each transfer rather than waiting for one that can be \
                  shared. haul does so for HTTP/1 anyway.",
            example: "haul -Z --parallel-immediate https://example.com/a https://example.com/b",
            see_also: &["parallel"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
