//! The option `--data-ascii`: is another name of `--data`.

use super::prelude::*;
use crate::parsed_args::{DataKind, ParsedData, TextOrFile};

pub(super) struct DataAsciiFlag;

impl Flag for DataAsciiFlag {
    fn spec(&self) -> &'static FlagSpec {
        &FlagSpec {
            long: "data-ascii",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send data in a POST",
            doc: "The same as --data; its oldest name.",
            example: "haul --data-ascii name=value https://example.com/form",
            see_also: &["data"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageReason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(ParsedData { kind: DataKind::Data, name: None, text });
        Ok(())
    }
}
