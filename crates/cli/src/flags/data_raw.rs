//! The option `--data-raw`: sends this data as the content of a POST. `@` has no special meaning.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct DataRawFlag;

impl FlagDefinition for DataRawFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "data-raw",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send data in a POST, \"@\" is not special",
            doc: "Like --data, but a leading \"@\" is part of the data.",
            example: "haul --data-raw @home https://example.com/form",
            see_also: "data",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = TextOrFile::Text(value.bytes().to_vec());
        args.request().data.push(ParsedDataOption { kind: DataOptionKind::Raw, name: None, text });
        Ok(())
    }
}
