//! The option `--referer` (`-e`): sets the value of the field `Referer`.

use super::header_value_parser::refuse_controls;
use super::prelude::*;

pub(super) struct RefererFlag;

impl FlagDefinition for RefererFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "referer",
            short: Some('e'),
            syntax: FlagSyntax::Value("url"),
            category: HelpCategory::Http,
            important: false,
            help: "Send this Referer",
            doc: "Sends URL as Referer. With \";auto\" after it, or alone, each redirect sets it to the URL that \
                  redirected. A redirect from https to http drops it.",
            example: "haul -e 'https://example.com/;auto' https://example.com/next",
            see_also: "user-agent header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = value.bytes();
        refuse_controls(text)?;
        let (url, auto) = match text.strip_suffix(b";auto") {
            Some(url) => (url, true),
            None => (text, false),
        };
        let request = args.request();
        request.auto_referer = auto;
        request.referer = (!url.is_empty()).then(|| url.to_vec());
        Ok(())
    }
}
