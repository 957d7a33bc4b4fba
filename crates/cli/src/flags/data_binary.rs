//! The option `--data-binary`: sends this data as the content of a POST. A file is sent byte for
//! byte.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct DataBinaryFlag;

impl FlagDefinition for DataBinaryFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "data-binary",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send data in a POST, files byte for byte",
            doc: "Like --data, but \"@file\" is sent byte for byte.",
            example: "haul --data-binary @picture.png -H 'Content-Type: image/png' https://example.com/upload",
            see_also: "data",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(ParsedDataOption { kind: DataOptionKind::Binary, name: None, text });
        Ok(())
    }
}
