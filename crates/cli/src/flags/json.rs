//! The option `--json`: sends this JSON text as the content of a POST.

use super::prelude::*;
use crate::parsed_args::{DataOptionKind, ParsedDataOption, TextOrFile};

pub(super) struct JsonFlag;

impl FlagDefinition for JsonFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "json",
            short: None,
            syntax: FlagSyntax::Value("data"),
            category: HelpCategory::Post,
            important: false,
            help: "Send JSON in a POST",
            doc: "Like --data-binary, with Content-Type and Accept set to application/json unless -H says otherwise. \
                  Repeated data is joined without \"&\".",
            example: "haul --json '{\"a\":1}' https://example.com/api",
            see_also: "data header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = TextOrFile::new(value.bytes())?;
        args.request().data.push(ParsedDataOption { kind: DataOptionKind::Json, name: None, text });
        Ok(())
    }
}
