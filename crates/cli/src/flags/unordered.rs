//! The option `--unordered`: prints each body when it is complete, instead of in the order of the
//! URLs.

use super::prelude::*;

pub(super) struct UnorderedFlag;

impl FlagDefinition for UnorderedFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "unordered",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Print bodies as they complete",
            doc: "Prints bodies in the order in which they complete, each whole, instead of in input order.",
            example: "haul --unordered --input-file list.txt",
            see_also: "parallel max-memory",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.unordered = value.is_on();
        Ok(())
    }
}
