//! `--retry-delay`.

use super::prelude::*;

pub(super) struct RetryDelay;

impl Flag for RetryDelay {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "retry-delay",
            short: None,
            takes: Takes::Value("seconds"),
            category: Category::Limits,
            important: false,
            help: "Fixed pause before a retry",
            doc: "Pauses this long before each retry, in decimal seconds, instead of doubling. 0, the default, means \
                  doubling.",
            example: "haul --retry 5 --retry-delay 0.5 https://example.com/",
            see_also: &["retry"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let delay = value.seconds_for(args.global.persona)?;
        args.transfer().retry.delay = (!delay.is_zero()).then_some(delay);
        Ok(())
    }
}
