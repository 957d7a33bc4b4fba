//! `--anyauth`.

use super::prelude::*;
use haul_policy::auth::Allowed;

pub(super) struct Anyauth;

impl Flag for Anyauth {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "anyauth",
            short: None,
            takes: Takes::Switch,
            category: Category::Auth,
            important: false,
            help: "Allow every authentication haul has",
            doc: "Waits for a challenge and answers the strongest scheme offered of Digest and Basic; NTLM and \
                  Negotiate are not supported. Costs an extra request. A body that can be read only once, such as \
                  standard input, cannot be sent again.",
            example: "haul --anyauth -u me:secret https://example.com/",
            see_also: &["user", "basic", "digest", "proxy-anyauth"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().allowed = value.on().then_some(Allowed::ANY);
        Ok(())
    }
}
