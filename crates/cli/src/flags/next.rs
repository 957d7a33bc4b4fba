//! The option `--next` (`-:`): begins a new group of URLs and options.

use super::prelude::*;

pub(super) struct NextFlag;

impl FlagDefinition for NextFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "next",
            short: Some(':'),
            syntax: FlagSyntax::Once,
            category: HelpCategory::General,
            important: false,
            help: "Start a new group of URLs and options",
            doc: "Starts a new group of URLs, with options of its own, which runs after the groups before it. Only \
                  options of the whole run (-s, -S, -v, -Z, --stats, --threads and the like) carry over. In a config \
                  file (-K), \"next\" separates the requests of a list: they run in parallel, in any order, unless \
                  --no-parallel is given or they share cookies (-b FILE, -c). With -Z, groups of the command line run \
                  in parallel, too.",
            example: "haul -I https://example.com/ --next -d x=1 https://example.com/form",
            see_also: "config",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.next_group()
    }
}
