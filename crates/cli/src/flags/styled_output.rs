//! The option `--styled-output`: is accepted without an effect, because haul prints header fields
//! as they arrive.

use super::prelude::*;

pub(super) struct StyledOutputFlag;

impl FlagDefinition for StyledOutputFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "styled-output",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Style headers on a terminal",
            doc: "Accepted for compatibility with curl. haul prints header fields as they arrived.",
            example: "haul --no-styled-output -I https://example.com/",
            see_also: "include",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}
