//! `--data-raw`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct DataRaw;

impl Flag for DataRaw {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "data-raw",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Post,
            important: false,
            help: "Send data in a POST, \"@\" is not special",
            doc: "Like --data, but a leading \"@\" is part of the data.",
            example: "haul --data-raw @home https://example.com/form",
            see_also: &["data"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = TextOrFile::Text(value.bytes().to_vec());
        args.request().data.push(DataLow { kind: DataKind::Raw, name: None, text });
        Ok(())
    }
}
