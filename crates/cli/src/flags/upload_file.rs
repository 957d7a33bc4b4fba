//! `-T`, `--upload-file`.

use super::prelude::*;
use crate::plan::Upload;

pub(super) struct UploadFile;

impl Flag for UploadFile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "upload-file",
            short: Some('T'),
            takes: Takes::Value("file"),
            category: Category::Post,
            important: true,
            help: "Upload a file with PUT",
            doc: "Sends FILE with PUT to the URL at the same position; a URL whose path ends in \"/\" gets the name \
                  of the file appended. \"-\" is standard input; \".\" is standard input too, with the reply read \
                  while it is sent; \"\" uploads nothing to this URL. {a,b} and [1-9] name several files, each sent \
                  to the URL, unless -g is given.",
            example: "haul -T report.pdf https://example.com/inbox/",
            see_also: &["data-binary", "request", "globoff", "expect100-timeout"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let upload = match value.bytes() {
            b"" => Upload::Nothing,
            b"-" => Upload::Stdin { interleave: false },
            b"." => Upload::Stdin { interleave: true },
            _ => Upload::File(value.path()?.into_os_string()),
        };
        args.group().uploads.push(upload);
        Ok(())
    }
}
