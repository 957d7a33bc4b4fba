//! The option `--csv`: prints the extracted values as rows of CSV.

use super::prelude::*;
use crate::plan::RecordOutputFormat;

pub(super) struct CsvFlag;

impl FlagDefinition for CsvFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "csv",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Extract,
            important: false,
            help: "Print values as rows of CSV",
            doc: "Prints a header line, and the values of the last stage as rows (RFC 4180, lines end in LF). The names \
                  in --extract NAME=REGEX are the columns; without names there is one column, \"value\". A page whose \
                  columns have one value each gives one row; with N values each it gives N rows. A column without \
                  values is empty. A page whose columns have different numbers of values fails, because nobody knows \
                  which belong together. With --with-url the first column is \"url\".",
            example: "haul --csv --extract 'name=<h1>([^<]+)' --extract 'price=([0-9.]+) EUR' --input-file list.txt",
            see_also: "extract jsonl with-url",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        match (value.is_on(), args.global.record_output) {
            (true, _) => args.global.record_output = Some(RecordOutputFormat::Csv),
            (false, Some(RecordOutputFormat::Csv)) => args.global.record_output = None,
            (false, _) => {}
        }
        Ok(())
    }
}
