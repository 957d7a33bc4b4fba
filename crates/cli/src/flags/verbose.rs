//! The option `--verbose` (`-v`): prints the heads of requests and responses.

use super::prelude::*;

pub(super) struct VerboseFlag;

impl FlagDefinition for VerboseFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "verbose",
            short: Some('v'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Verbose,
            important: true,
            help: "Show requests and replies",
            doc: "Shows the heads of requests and replies on stderr, without the values of credentials \
                  and cookies. -vv adds --trace-ids and --trace-time; -vvv shows contents, too, as \
                  --trace-ascii does.",
            example: "haul -v https://example.com/",
            see_also: "stats include",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let is_curl = args.global.persona.is_curl();
        args.global.trace.set_verbose(value.is_on(), is_curl);
        Ok(())
    }
}
