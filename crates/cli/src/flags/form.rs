//! The option `--form` (`-F`): sends a form (`multipart/form-data`), which may contain files.

use super::prelude::*;
use crate::form;

pub(super) struct FormFlag;

impl FlagDefinition for FormFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "form",
            short: Some('F'),
            syntax: FlagSyntax::Value("name=content"),
            category: HelpCategory::Post,
            important: true,
            help: "Send a form with files",
            doc: "Sends a multipart/form-data POST (RFC 7578). CONTENT is text, \"@file\" a file, \"@a,b\" several \
                  files, \"<file\" the text of a file; \"-\" is standard input. It may be followed by \
                  \";type=TYPE/SUBTYPE\", \";filename=NAME\", \";headers=LINE\" or \";headers=@FILE\", and \
                  \";encoder=NAME\" (base64, quoted-printable, 7bit, 8bit, binary); double \
                  quotes protect \";\" and \",\". \"name=(\" opens a nested list, \"=)\" closes it. Files are \
                  streamed, so they may be of any size; those that are encoded are held in memory.",
            example: "haul -F name=me -F 'photo=@me.jpg;type=image/jpeg' https://example.com/form",
            see_also: "form-string form-escape data",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let (item, warnings) = form::parse(value.bytes())?;
        args.request().form.push(item)?;
        warnings.into_iter().for_each(|warning| args.warn(warning));
        Ok(())
    }
}
