//! The option `--form-string`: adds a field to the form and sends its value unchanged.

use super::prelude::*;
use crate::form::{self, ParsedFormOption, ParsedFormPart};

pub(super) struct FormStringFlag;

impl FlagDefinition for FormStringFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "form-string",
            short: None,
            syntax: FlagSyntax::Value("name=string"),
            category: HelpCategory::Post,
            important: false,
            help: "Send a form field literally",
            doc: "Like --form, but \"@\", \"<\" and \";\" have no special meaning.",
            example: "haul --form-string 'text=@home; now' https://example.com/form",
            see_also: "form",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let (name, text) = form::split(value.bytes())?;
        args.request().form.push(ParsedFormOption::Part(ParsedFormPart::literal(name, text)))
    }
}
