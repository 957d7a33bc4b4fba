//! The option `--continue-at` (`-C`): resumes a partial file at an offset.

use super::prelude::*;
use crate::plan;

pub(super) struct ContinueAtFlag;

impl FlagDefinition for ContinueAtFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "continue-at",
            short: Some('C'),
            syntax: FlagSyntax::Value("offset"),
            category: HelpCategory::Output,
            important: false,
            help: "Resume a partial file",
            doc: "Asks for the body from byte OFFSET on and appends it to the output. \"-\" takes the size of the \
                  output file as OFFSET, which needs -o or -O; in curl's place, \"-\" with standard output asks for \
                  the whole body. If the server does not send ranges, the transfer fails with 33 rather than write \
                  the beginning twice. The body is requested uncompressed. Not with --range, --remove-on-error or \
                  --no-clobber; \"-\" not with --remote-header-name. Files that haul itself left unfinished under a \
                  temporary name are resumed without this option. With -T, sends the file from OFFSET on, with \
                  Content-Range; \"-\" then sends all of it.",
            example: "haul -C - -O https://example.com/file.tar.gz",
            see_also: "range remote-name skip-existing",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let from = match value.content()? {
            "-" => plan::ContinueAt::OutputSize,
            _ => plan::ContinueAt::Offset(value.number()?),
        };
        args.request().continue_at = Some(from);
        Ok(())
    }
}
