//! `--retry`.

use super::prelude::*;

pub(super) struct Retry;

impl Flag for Retry {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "retry",
            short: None,
            takes: Takes::Value("num"),
            category: Category::Limits,
            important: true,
            help: "Try again after a transient failure",
            doc: "Tries a transfer up to NUM times more after a timeout, a break, or a status of 408, \
                  429, 500, 502, 503, 504, 522 or 524, if its method may be sent twice (not POST or PATCH; as `curl` any). A body that \
                  broke goes on at the exact byte if that is provably the same content; else it begins anew, if nothing \
                  of it has been delivered yet. Default 3; 0 never. Pauses double from one second unless \
                  --retry-delay is given; Retry-After is obeyed. As `curl` a reply that is tried again is delivered \
                  all the same: to a file the next one takes its place, on standard output it stands behind it.",
            example: "haul --retry 5 https://example.com/",
            see_also: &["retry-delay", "retry-max-time", "retry-connrefused", "retry-all-errors"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().retry.count = value.number_in(0, u64::from(u32::MAX))? as u32;
        Ok(())
    }
}
