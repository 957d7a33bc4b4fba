//! The option `--upload-file` (`-T`): uploads a file with PUT.

use super::prelude::*;
use crate::plan::UploadArg;

pub(super) struct UploadFileFlag;

impl FlagDefinition for UploadFileFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "upload-file",
            short: Some('T'),
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Post,
            important: true,
            help: "Upload a file with PUT",
            doc: "Sends FILE with PUT to the URL at the same position; a URL whose path ends in \"/\" gets the name \
                  of the file appended. \"-\" is standard input; \".\" is standard input too, with the reply read \
                  while it is sent; \"\" uploads nothing to this URL. {a,b} and [1-9] name several files, each sent \
                  to the URL, unless -g is given.",
            example: "haul -T report.pdf https://example.com/inbox/",
            see_also: "data-binary request globoff expect100-timeout",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let upload = match value.bytes() {
            b"" => UploadArg::Nothing,
            b"-" => UploadArg::Stdin { interleave: false },
            b"." => UploadArg::Stdin { interleave: true },
            _ => UploadArg::File(value.path()?.into_os_string()),
        };
        args.group().uploads.push(upload);
        Ok(())
    }
}
