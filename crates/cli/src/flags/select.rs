//! The option `--select`: prints texts or attributes of HTML elements instead of the body.

use super::prelude::*;

pub(super) struct SelectFlag;

impl FlagDefinition for SelectFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "select",
            short: None,
            syntax: FlagSyntax::Value("css"),
            category: HelpCategory::Extract,
            important: true,
            help: "Print values of HTML elements instead of bodies",
            doc: "Prints a value of each HTML element that the CSS selector matches, one a line: its text (\"h1\"), or \
                  the attribute after @ (\"a.title@href\"). Attributes that hold URLs, such as href, src and srcset, \
                  are printed as absolute URLs. Character references are decoded, white space in text becomes single \
                  blanks, and empty values are left out except with --jsonl and --csv. Selectors that depend on what follows an element, such as \
                  :last-child and :has(), are refused. Charsets are those of --extract. Several in a stage give their \
                  values in the order of the page. An --extract in the same stage is searched for in each value.",
            example: "haul --select 'h2 > a@href' https://example.com/",
            see_also: "select-json extract then unique sort",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().select.push(value.content()?.to_owned());
        Ok(())
    }
}
