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
            help: "Keep where else origins are served",
            doc: "Where else origins are served (Alt-Svc, RFC 7838) is kept in FILE, and requests go \
                  there where haul speaks what is spoken there (h1, h2); where that fails they go to the \
                  origin. Not with --insecure, and not through proxies. FILE is read at the start and \
                  written at the end, and need not be there; \"\" keeps it in memory for this run. By \
                  default nothing is kept.",
            example: "haul --alt-svc known https://example.com/",
            see_also: &["proto", "hsts"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().alt_svc = super::hsts::store(value)?;
        Ok(())
    }
}
