//! The option `--csv-in`: the columns of an input file fill the placeholders of the command line.

use super::prelude::*;
use crate::record_input::RecordInputFormat;

pub(super) struct CsvInFlag;

impl FlagDefinition for CsvInFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "csv-in",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Fill {column} from the rows of --input-file, as CSV",
            doc: "Reads each --input-file as CSV with a header line (RFC 4180). Each row makes a request of each URL \
                  on the command line: \"{NAME}\" stands for the column NAME in the URL, -H, -A, -e, -b, -d and its \
                  like, --json, --url-query and -o, encoded for its place. In -o, columns take precedence over the \
                  parts of the URL. Without a URL, the column \"url\" has it. In a file that ends in .tsv or .tab, tabs \
                  separate the fields. Credentials of the command line go only to origins that the command line \
                  names, and so do a query and content without a column. A wrong row is one failed request; the others go on.",
            example: "haul --csv-in --input-file users.csv 'https://api.example.com/users/{id}' --json '{\"name\": \"{name}\"}'",
            see_also: "input-file tsv-in jsonl-in",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().record_format = value.is_on().then_some(RecordInputFormat::Csv);
        Ok(())
    }
}
