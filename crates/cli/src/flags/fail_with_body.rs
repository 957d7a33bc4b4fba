//! `--fail-with-body`.

use super::prelude::*;

/// What curl says.
pub(super) const BOTH: &str = "You must select either --fail or --fail-with-body, not both.";

pub(super) struct FailWithBody;

impl Flag for FailWithBody {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "fail-with-body",
            short: None,
            takes: Takes::Switch,
            category: Category::Http,
            important: false,
            help: "Fail on HTTP errors but keep the body",
            doc: "As --fail, but the body of the reply is printed or written all the same. The \
                  exit code is 22.",
            example: "haul --fail-with-body https://example.com/missing",
            see_also: &["fail"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let is_curl = args.global.persona.is_curl();
        let transfer = args.transfer();
        if is_curl && value.on() && transfer.fail && !transfer.fail_with_body {
            return Err(Reason::bad_use(BOTH));
        }
        (transfer.fail, transfer.fail_with_body) = (value.on(), value.on());
        Ok(())
    }
}
