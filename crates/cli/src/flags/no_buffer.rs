//! `-N`, `--no-buffer`.

use super::prelude::*;

pub(super) struct NoBuffer;

impl Flag for NoBuffer {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "no-buffer",
            short: Some('N'),
            takes: Takes::Once,
            category: Category::Output,
            important: false,
            help: "Write at once",
            doc: "Accepted for compatibility with curl. haul writes output as soon as it has it.",
            example: "haul -N https://example.com/",
            see_also: &["output"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
