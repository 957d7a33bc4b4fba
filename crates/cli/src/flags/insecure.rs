//! `-k`, `--insecure`.

use super::prelude::*;

pub(super) struct Insecure;

impl Flag for Insecure {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "insecure",
            short: Some('k'),
            takes: Takes::Switch,
            category: Category::Tls,
            important: true,
            help: "Do not verify the server",
            doc: "Accepts any certificate: whoever controls the network can read and change everything. A later \
                  --then inherits it.",
            example: "haul -k https://localhost/",
            see_also: &["cacert"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.insecure = value.on();
        Ok(())
    }
}
