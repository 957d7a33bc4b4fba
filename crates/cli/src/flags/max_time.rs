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
            help: "Most time for a transfer",
            doc: "Limits each transfer from start to end, in decimal seconds. Exit 28 when it is over. \
                  0 is no limit, the default.",
            example: "haul -m 2.5 https://example.com/",
            see_also: &["connect-timeout", "retry-max-time"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let limit = value.seconds()?;
        args.transfer().max_time = (!limit.is_zero()).then_some(limit);
        Ok(())
    }
}
