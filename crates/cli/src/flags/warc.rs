//! The option `--warc`: writes all requests and responses to an archive.

use super::prelude::*;

pub(super) struct WarcFlag;

impl FlagDefinition for WarcFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "warc",
            short: None,
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Output,
            important: true,
            help: "Write requests and replies to a web archive",
            doc: "Writes each request and its reply to FILE in the format WARC/1.1, with redirects, challenges and \
                  replies that were retried. If the name ends in .gz, each record is compressed. A reply whose body the \
                  archive has already becomes a revisit record. Credentials in requests are left out \
                  (--warc-secrets keeps them). An existing file is refused (23), but a job (--job) continues its own. \
                  Bodies are not split, and the agent is not used.",
            example: "haul --warc site.warc.gz -O 'https://example.com/page-[1-9].html'",
            see_also: "warc-max-size warc-secrets jsonl dump-header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.warc.path = match value.bytes() {
            b"" | b"-" => return Err(UsageErrorReason::bad_use("an archive needs the name of a file")),
            _ => Some(value.path()?),
        };
        Ok(())
    }
}
