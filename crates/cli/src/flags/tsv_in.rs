//! The option `--tsv-in`: the columns of an input file fill the placeholders of the command line.

use super::prelude::*;
use crate::record_input::RecordInputFormat;

pub(super) struct TsvInFlag;

impl FlagDefinition for TsvInFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tsv-in",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Parallel,
            important: false,
            help: "Fill {column} from the rows of --input-file, with tabs",
            doc: "Reads each --input-file like --csv-in, with tabs between the fields.",
            example: "haul --tsv-in --input-file table.txt 'https://example.com/{id}'",
            see_also: "input-file csv-in jsonl-in",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().record_format = value.is_on().then_some(RecordInputFormat::Tsv);
        Ok(())
    }
}
