//! The option `--etag-save`: saves the entity tag of the response in this file.

use super::prelude::*;

pub(super) struct EtagSaveFlag;

impl FlagDefinition for EtagSaveFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "etag-save",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Http,
            important: false,
            help: "Save the entity tag to a file",
            doc: "Writes the ETag of the reply to FILE, for --etag-compare in a later run; \"-\" is standard output. \
                  For one URL only.",
            example: "haul --etag-save tag -o page https://example.com/",
            see_also: "etag-compare",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let follows_urls = args.group().urls.len() > 1;
        let request = args.request();
        request.etag_save = Some(value.path()?);
        request.etag_follows_urls |= follows_urls;
        Ok(())
    }
}
