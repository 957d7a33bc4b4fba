//! The option `--extract`: prints the matches of a regular expression instead of the body.

use super::prelude::*;

pub(super) struct ExtractFlag;

impl FlagDefinition for ExtractFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "extract",
            short: None,
            syntax: FlagSyntax::Value("regex"),
            category: HelpCategory::Extract,
            important: true,
            help: "Print matches instead of bodies",
            doc: "Prints each match of REGEX (Rust syntax), one a line: group 1 if there is one, else the whole \
                  match. Matches that span several reads are found. Bodies are decoded to UTF-8 by their charset: \
                  that of Content-Type, of a byte order mark, or of a <meta>; one that declares none and is not \
                  valid UTF-8 is windows-1252. Belongs to the stage opened by the last --then. Given several times \
                  in a stage, each REGEX is searched for, and values come in the order in which their matches begin. \
                  Beside --select or --select-json in a stage, each selected value is searched, not the body. With \
                  --jsonl or --csv, NAME=REGEX gives the values a name; write (?:NAME)= to search for NAME= itself.",
            example: "haul --extract 'href=\"([^\"]+)\"' https://example.com/",
            see_also: "select select-json csv extract-bytes jsonl then unique sort with-url",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().extract.push(value.content()?.to_owned());
        Ok(())
    }
}
