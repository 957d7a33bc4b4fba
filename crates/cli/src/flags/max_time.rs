//! `-m`, `--max-time`.

use super::prelude::*;

pub(super) struct MaxTime;

impl Flag for MaxTime {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "max-time",
            short: Some('m'),
            takes: Takes::Value("seconds"),
            category: Category::Limits,
            important: true,
            help: "Maximum time for a transfer",
            doc: "Limits each transfer from start to end, in decimal seconds. Exits with 28 when the time is up. 0, \
                  the default, means no limit.",
            example: "haul -m 2.5 https://example.com/",
            see_also: &["connect-timeout", "retry-max-time"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let limit = value.seconds_for(args.global.persona)?;
        args.transfer().max_time = (!limit.is_zero()).then_some(limit);
        Ok(())
    }
}
