//! `-h`, `--help`.

use super::prelude::*;
use crate::args::Special;

pub(super) struct Help;

impl Flag for Help {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "help",
            short: Some('h'),
            takes: Takes::Trailing("subject"),
            category: Category::General,
            important: true,
            help: "Show help",
            doc: "Shows the most used options, those of a category, \"all\" options, the list of categories \
                  (\"category\"), or everything about one option.",
            example: "haul --help parallel",
            see_also: &["version"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let subject = value.text()?;
        let subject = (!subject.is_empty()).then(|| subject.to_owned());
        args.special = Some(Special::Help(subject));
        Ok(())
    }
}
