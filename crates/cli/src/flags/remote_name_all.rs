//! The option `--remote-name-all`: applies `-O` to every URL without an output option.

use super::prelude::*;

pub(super) struct RemoteNameAllFlag;

impl FlagDefinition for RemoteNameAllFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "remote-name-all",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Use -O for every URL",
            doc: "Uses -O for every URL that has no output of its own; in curl's place, for the URLs that follow.",
            example: "haul --remote-name-all 'https://example.com/[1-3].html'",
            see_also: "remote-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // To curl it is about the URLs that follow.
        let from = if args.global.persona.is_curl() { args.group().output_count() } else { 0 };
        args.group().remote_name_all.push((from, value.is_on()));
        Ok(())
    }
}
