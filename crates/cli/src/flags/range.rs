//! The option `--range` (`-r`): requests only these bytes of the content.

use super::header_value_parser::refuse_controls;
use super::prelude::*;

pub(super) struct RangeFlag;

impl FlagDefinition for RangeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "range",
            short: Some('r'),
            syntax: FlagSyntax::Value("range"),
            category: HelpCategory::Http,
            important: false,
            help: "Fetch only some bytes",
            doc: "Sends \"Range: bytes=RANGE\": \"0-499\", \"500-\", \"-500\", or several separated by commas, whose \
                  reply is printed as it arrives.",
            example: "haul -r 0-499 https://example.com/file",
            see_also: "header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let mut range = value.content()?.to_owned();
        refuse_controls(range.as_bytes())?;
        if !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit()) {
            args.warn("A specified range MUST include at least one dash '-'. Appending one for you!");
            range.push('-');
        }
        args.request().range = Some(range);
        Ok(())
    }
}
