//! The option `--out-null`: discards the body.

use super::prelude::*;
use crate::plan;

pub(super) struct OutNullFlag;

impl FlagDefinition for OutNullFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "out-null",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Discard a body",
            doc: "Discards the body of the next URL that has no output yet, without writing any file.",
            example: "haul --out-null https://example.com/",
            see_also: "output",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // curl discards the body in both forms.
        if !value.is_on() && !args.global.persona.is_curl() {
            return Err(UsageErrorReason::NotReversible);
        }
        args.push_output(plan::OutputArg::Null);
        Ok(())
    }
}
