//! The option `--jsonl`: prints one JSON object for each URL instead of its body.

use super::prelude::*;
use crate::plan::RecordOutputFormat;

pub(super) struct JsonlFlag;

impl FlagDefinition for JsonlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "jsonl",
            short: None,
            syntax: FlagSyntax::Optional("no-body"),
            category: HelpCategory::Output,
            important: true,
            help: "Print a JSON object for each URL",
            doc: "Prints one line for each URL, a JSON object with the URL, status, header fields, body, error, \
                  attempts, redirects, times, addresses, sizes and TLS parameters. Failed URLs have lines, too. A body \
                  is text (\"body\") or Base64 (\"body_base64\"); with -o or -O it goes to a file, and the line has \
                  the name, size and SHA-256 of the file. With --extract the line has the values instead of the body. \
                  The body of a failed status is included. A body or list of values of more than a quarter of \
                  --max-memory fails. \"=no-body\" leaves bodies out. With --then, the lines are those of the last \
                  stage. docs/records.schema.json describes the lines.",
            example: "haul --jsonl=no-body --input-file list.txt",
            see_also: "extract max-memory unordered write-out",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.record_output = Some(match value.bytes() {
            b"" => RecordOutputFormat::Jsonl { bodies: true },
            b"no-body" => RecordOutputFormat::Jsonl { bodies: false },
            _ => return Err(UsageErrorReason::bad_use("the only value is no-body")),
        });
        Ok(())
    }
}
