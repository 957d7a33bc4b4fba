//! The option `--form-escape`: escapes quotes in the names of a form with backslashes.

use super::prelude::*;

pub(super) struct FormEscapeFlag;

impl FlagDefinition for FormEscapeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "form-escape",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Post,
            important: false,
            help: "Escape form names with a backslash",
            doc: "Sends a double quote in the name of a field or file as a backslash and the quote. By default it is \
                  sent as \"%22\", as browsers do.",
            example: "haul --form-escape -F 'a=@b' https://example.com/form",
            see_also: "form",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().form.backslash = value.is_on();
        Ok(())
    }
}
