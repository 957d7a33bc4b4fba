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
            doc: "Opens a connection for each transfer rather than wait for one that can be shared. haul always does \
                  so for HTTP/1.",
            example: "haul -Z --parallel-immediate https://example.com/a https://example.com/b",
            see_also: &["parallel"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
