//! The option `--time-cond` (`-z`): fetches the content only if it is newer than a date or a file.

use super::prelude::*;

pub(super) struct TimeCondFlag;

impl FlagDefinition for TimeCondFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "time-cond",
            short: Some('z'),
            syntax: FlagSyntax::Value("time"),
            category: HelpCategory::Http,
            important: false,
            help: "Fetch only what is newer",
            doc: "Fetches a body only if it is newer than a date (\"Wed, 21 Oct 2015 07:28:00 GMT\", \"2015-10-21 \
                  07:28\", \"20151021\") or than a file; with a leading \"-\", only if it is older. A 304 reply is a \
                  success without a body.",
            example: "haul -z 2024-05-01 -o page https://example.com/",
            see_also: "etag-compare remote-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if value.bytes().is_empty() && args.global.persona.is_curl() {
            args.request().time_cond = None;
            return Ok(());
        }
        args.request().time_cond = Some(value.content()?.to_owned());
        Ok(())
    }
}
