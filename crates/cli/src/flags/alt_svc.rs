//! `--alt-svc`.

use super::prelude::*;

pub(super) struct AltSvc;

impl Flag for AltSvc {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "alt-svc",
            short: None,
            takes: Takes::Value("filename"),
            category: Category::Http,
            important: false,
            help: "Remember alternative services in this file",
            doc: "Remembers in FILE where else an origin is served (Alt-Svc, RFC 7838) and sends requests there, over \
                  HTTP/1.1 or HTTP/2. If the alternative fails, the request goes to the origin. Not used with \
                  --insecure or through a proxy. FILE is read at the start and written at the end, and need not \
                  exist; \"\" keeps the entries in memory for this run. By default nothing is remembered.",
            example: "haul --alt-svc known https://example.com/",
            see_also: &["proto", "hsts"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().alt_svc = super::hsts::store(value)?;
        Ok(())
    }
}
