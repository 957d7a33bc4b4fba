//! The option `--help` (`-h`): prints the help for a category or an option.

use super::prelude::*;
use crate::parsed_args::InfoOption;

pub(super) struct HelpFlag;

impl FlagDefinition for HelpFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "help",
            short: Some('h'),
            syntax: FlagSyntax::Trailing("subject"),
            category: HelpCategory::General,
            important: true,
            help: "Show help",
            doc: "Shows the most used options, those of a category, \"all\" options, the list of categories \
                  (\"category\"), or everything about one option.",
            example: "haul --help parallel",
            see_also: "version",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let subject = value.text()?;
        let subject = (!subject.is_empty()).then(|| subject.to_owned());
        args.info = Some(InfoOption::Help(subject));
        Ok(())
    }
}
