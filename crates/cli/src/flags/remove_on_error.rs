//! `--remove-on-error`.

use super::prelude::*;

pub(super) struct RemoveOnError;

impl Flag for RemoveOnError {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "remove-on-error",
            short: None,
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Leave no partial file after a failure",
            doc: "Removes a partly written file if its transfer fails. By default it stays under a temporary name \
                  beside the file, for the next run to continue. No effect on outputs that are not regular files.",
            example: "haul --remove-on-error -o file https://example.com/file",
            see_also: &["output", "continue-at", "fail"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().remove_on_error = value.on();
        Ok(())
    }
}
