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
            help: "Maximum number of transfers at a time",
            doc: "Maximum number of transfers at a time, over all hosts, from 1 to 65535. Default 64.",
            example: "haul --parallel-max 200 --input-file list.txt",
            see_also: &["parallel-max-host"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.parallel_max = match value.number() {
            // curl takes its default for what it cannot do.
            Ok(0 | 65_536..) if args.global.persona.is_curl() => args.global.persona.global().parallel_max,
            _ => value.number_in(1, 65_535)? as usize,
        };
        Ok(())
    }
}
