//! `--extract-bytes`.

use super::prelude::*;

pub(super) struct ExtractBytes;

impl Flag for ExtractBytes {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "extract-bytes",
            short: None,
            takes: Takes::Switch,
            category: Category::Extract,
            important: false,
            help: "Search the bytes of bodies as they are",
            doc: "Lets the --extract of its stage search the bytes of bodies as they are and print them unchanged, \
                  whatever the charset. Without it, bodies are decoded to UTF-8 first.",
            example: "haul --extract '(?-u)\\x89PNG' --extract-bytes https://example.com/logo.png",
            see_also: &["extract"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.stage().extract_bytes = value.on();
        Ok(())
    }
}
