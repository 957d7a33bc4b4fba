//! `--data-ascii`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct DataAscii;

impl Flag for DataAscii {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "data-ascii",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Post,
            important: false,
            help: "Send data in a POST",
            doc: "The same as --data; its oldest name.",
            example: "haul --data-ascii name=value https://example.com/form",
            see_also: &["data"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(DataLow { kind: DataKind::Data, name: None, text });
        Ok(())
    }
}
