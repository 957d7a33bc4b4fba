//! The option `--jsonl-in`: each line of an input file is a JSON object that describes a request.

use super::prelude::*;
use crate::record_input::RecordInputFormat;

pub(super) struct JsonlInFlag;

impl FlagDefinition for JsonlInFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "jsonl-in",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Read a request from each line of --input-file, as JSON",
            doc: "Reads a JSON object from each line of --input-file. Its keys take precedence over the options: \
                  \"url\", \"method\", \"headers\" (an object; a list repeats a field, null leaves it out), \"query\" \
                  (an object), one of \"body\" (a text), \"json\", \"form\" (an object), \"body_base64\" and \
                  \"body_file\" (see --allow-body-files), \"output\" (a file inside --output-dir), \"auth\" \
                  (\"user:password\", or an object with user and password, or with bearer), \"timeout\" (seconds), and \
                  \"id\". A URL on the command line is the base of the others and the default: it is not fetched \
                  itself. Credentials of the command line (-u, -b, secret headers), its query (--url-query) and its \
                  content (-d) go only to the origin of that URL, and not with a \"Host\" of another host. A wrong \
                  line is one failed request (26); the others go on.",
            example: "haul --jsonl-in --input-file requests.jsonl https://api.example.com/items",
            see_also: "input-file allow-body-files output-dir",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().record_format = value.is_on().then_some(RecordInputFormat::JsonLines);
        Ok(())
    }
}
