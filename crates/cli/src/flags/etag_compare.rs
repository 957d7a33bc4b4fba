//! The option `--etag-compare`: fetches the content only if its entity tag differs from the one in
//! this file.

use super::prelude::*;

pub(super) struct EtagCompareFlag;

impl FlagDefinition for EtagCompareFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "etag-compare",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Http,
            important: false,
            help: "Fetch only if the entity tag has changed",
            doc: "Sends the entity tag stored in FILE as If-None-Match; the server answers 304 without a body if the \
                  content is unchanged. A missing file counts as an empty tag. For one URL only.",
            example: "haul --etag-compare tag --etag-save tag -o page https://example.com/",
            see_also: "etag-save time-cond",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let follows_urls = args.group().urls.len() > 1;
        let request = args.request();
        request.etag_compare = Some(value.path()?);
        request.etag_follows_urls |= follows_urls;
        Ok(())
    }
}
