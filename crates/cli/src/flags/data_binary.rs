//! `--data-binary`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct DataBinary;

impl Flag for DataBinary {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "data-binary",
            short: None,
            takes: Takes::Value("data"),
            category: Category::Post,
            important: false,
            help: "Send data in a POST, files byte for byte",
            doc: "Like --data, but \"@file\" is sent byte for byte.",
            example: "haul --data-binary @picture.png -H 'Content-Type: image/png' https://example.com/upload",
            see_also: &["data"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(DataLow { kind: DataKind::Binary, name: None, text });
        Ok(())
    }
}
