//! `--form-escape`.

use super::prelude::*;

pub(super) struct FormEscape;

impl Flag for FormEscape {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "form-escape",
            short: None,
            takes: Takes::Switch,
            category: Category::Post,
            important: false,
            help: "Escape form names with a backslash",
            doc: "Sends a double quote in the name of a field or file as a backslash and the quote. By default it is \
                  sent as \"%22\", as browsers do.",
            example: "haul --form-escape -F 'a=@b' https://example.com/form",
            see_also: &["form"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.request().form.backslash = value.on();
        Ok(())
    }
}
