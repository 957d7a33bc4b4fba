//! `--form-string`.

use super::prelude::*;
use crate::form::{self, Item, PartLow};

pub(super) struct FormString;

impl Flag for FormString {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "form-string",
            short: None,
            takes: Takes::Value("name=string"),
            category: Category::Post,
            important: false,
            help: "Send a form field literally",
            doc: "Like --form, but \"@\", \"<\" and \";\" have no special meaning.",
            example: "haul --form-string 'text=@home; now' https://example.com/form",
            see_also: &["form"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let (name, text) = form::split(value.bytes())?;
        args.request().form.push(Item::Part(PartLow::literal(name, text)))
    }
}
