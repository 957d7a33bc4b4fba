//! `--parallel-max`.

use super::prelude::*;

pub(super) struct ParallelMax;

impl Flag for ParallelMax {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "parallel-max",
            short: None,
            takes: Takes::Value("num"),
            category: Category::Parallel,
            important: false,
            help: "Most transfers at once",
            doc: "Most transfers at once over all hosts, from 1 to 65535. Default 64.",
            example: "haul --parallel-max 200 --input-file list.txt",
            see_also: &["parallel-max-host"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let least = if args.global.persona.is_curl() { 0 } else { 1 };
        args.global.parallel_max = match value.number_in(least, 65_535)? as usize {
            // curl takes its default for what it cannot do.
            0 => args.global.persona.global().parallel_max,
            most => most,
        };
        Ok(())
    }
}
