//! The option `--data` (`-d`): sends this data as the content of a POST.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct DataFlag;

impl FlagDefinition for DataFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "data",
            short: Some('d'),
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: true,
            help: "Send data in a POST",
            doc: "Sends DATA as a form (application/x-www-form-urlencoded). \"@file\" reads a file, \"@-\" standard \
                  input, dropping CR, LF and NUL bytes. Repeated data is joined with \"&\". A POST is not retried \
                  after a failure if the server may have seen it.",
            example: "haul -d name=value -d @more https://example.com/form",
            see_also: "data-binary data-raw json",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(ParsedDataOption { kind: DataOptionKind::Data, name: None, text });
        Ok(())
    }
}
