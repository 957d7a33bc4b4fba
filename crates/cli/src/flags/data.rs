//! `-d`, `--data`.

use super::prelude::*;
use crate::args::{DataKind, DataLow, TextOrFile};

pub(super) struct Data;

impl Flag for Data {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "data",
            short: Some('d'),
            takes: Takes::Value("data"),
            category: Category::Post,
            important: true,
            help: "Send data in a POST",
            doc: "Sends DATA as a form (application/x-www-form-urlencoded). \"@file\" reads a file, \"@-\" standard \
                  input, dropping CR, LF and NUL bytes. Repeated data is joined with \"&\". A POST is not retried \
                  after a failure if the server may have seen it.",
            example: "haul -d name=value -d @more https://example.com/form",
            see_also: &["data-binary", "data-raw", "json"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(DataLow { kind: DataKind::Data, name: None, text });
        Ok(())
    }
}
