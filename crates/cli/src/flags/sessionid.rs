//! `--sessionid`.

use super::prelude::*;

pub(super) struct Sessionid;

impl Flag for Sessionid {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "sessionid",
            short: None,
            takes: Takes::Switch,
            category: Category::Tls,
            important: false,
            help: "Resume TLS sessions",
            doc: "Resumes an earlier TLS session with the same server, which is the default; --no-sessionid makes \
                  each handshake a full one.",
            example: "haul --no-sessionid https://example.com/",
            see_also: &["tlsv1.3"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().tls.resume = value.on();
        Ok(())
    }
}
