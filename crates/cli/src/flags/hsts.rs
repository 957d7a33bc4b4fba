//! `--hsts`.

use super::prelude::*;
use crate::plan::Store;

pub(super) struct Hsts;

impl Flag for Hsts {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "hsts",
            short: None,
            takes: Takes::Value("filename"),
            category: Category::Http,
            important: false,
            help: "Remember https-only hosts in this file",
            doc: "Uses https alone for hosts that asked for it (Strict-Transport-Security, RFC 6797), in all runs \
                  that share FILE. It is read at the start and written at the end, and need not exist; \"\" keeps the \
                  entries in memory for this run. By default nothing is remembered.",
            example: "haul --hsts known https://example.com/",
            see_also: &["proto", "alt-svc"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().hsts = store(value)?;
        Ok(())
    }
}

/// A file, or memory where its name is empty.
pub(super) fn store(value: FlagValue<'_>) -> Result<Store, Reason> {
    match value.bytes() {
        b"" => Ok(Store::Memory),
        _ => value.path().map(Store::File),
    }
}
