//! The option `--user-agent` (`-A`): sets the value of the field `User-Agent`.

use super::header_value_parser::refuse_controls;
use super::prelude::*;

pub(super) struct UserAgentFlag;

impl FlagDefinition for UserAgentFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "user-agent",
            short: Some('A'),
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Http,
            important: true,
            help: "Send this User-Agent",
            doc: "Sends NAME as User-Agent instead of haul/VERSION; an empty NAME sends none.",
            example: "haul -A 'mybot/1.0' https://example.com/",
            see_also: "header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        refuse_controls(value.bytes())?;
        args.request().user_agent = Some(value.bytes().to_vec());
        Ok(())
    }
}
