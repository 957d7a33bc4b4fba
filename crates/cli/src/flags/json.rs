//! `--json`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct Json;

impl Flag for Json {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "json",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Post,
            important: false,
            help: "Send JSON in a POST",
            doc: "Like --data-binary, with Content-Type and Accept set to application/json unless -H says otherwise. \
                  Repeated data is joined without \"&\".",
            example: "haul --json '{\"a\":1}' https://example.com/api",
            see_also: &["data", "header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(DataLow { kind: DataKind::Json, name: None, text });
        Ok(())
    }
}
