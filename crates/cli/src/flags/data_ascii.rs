//! The option `--data-ascii`: another name of `--data`.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct DataAsciiFlag;

impl FlagDefinition for DataAsciiFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "data-ascii",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send data in a POST",
            doc: "The same as --data; its oldest name.",
            example: "haul --data-ascii name=value https://example.com/form",
            see_also: "data",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(ParsedDataOption { kind: DataOptionKind::Data, name: None, text });
        Ok(())
    }
}
