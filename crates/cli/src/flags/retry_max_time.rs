//! `--retry-max-time`.

use super::prelude::*;

pub(super) struct RetryMaxTime;

impl Flag for RetryMaxTime {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "retry-max-time",
            short: None,
            takes: Takes::Value("seconds"),
            category: Category::Limits,
            important: false,
            help: "Stop retrying after this long",
            doc: "Starts no retry once this many decimal seconds have passed since the first attempt. 0, the default, \
                  means no limit.",
            example: "haul --retry 5 --retry-max-time 30 https://example.com/",
            see_also: &["retry", "max-time"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let limit = value.seconds_for(args.global.persona)?;
        args.transfer().retry.max_time = (!limit.is_zero()).then_some(limit);
        Ok(())
    }
}
