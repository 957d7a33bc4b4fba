//! The option `--disable` (`-q`): as the first option, disables the default config file of the curl
//! persona.

use super::prelude::*;

pub(super) struct DisableFlag;

impl FlagDefinition for DisableFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "disable",
            short: Some('q'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::General,
            important: false,
            help: "Read no default config file",
            doc: "As the first option, in curl's place: does not read .curlrc. haul itself reads no default config \
                  file, so there is nothing to disable.",
            example: "haul -q https://example.com/",
            see_also: "config",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}
