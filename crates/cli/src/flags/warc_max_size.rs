//! The option `--warc-max-size`: divides the archive of `--warc` into numbered files.

use super::prelude::*;

pub(super) struct WarcMaxSizeFlag;

impl FlagDefinition for WarcMaxSizeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "warc-max-size",
            short: None,
            syntax: FlagSyntax::Value("bytes"),
            category: HelpCategory::Output,
            important: false,
            help: "Divide the archive into numbered files",
            doc: "Begins the next file of the archive before one would exceed this size; a single request and reply \
                  may exceed it. The files of --warc site.warc.gz are then site-00000.warc.gz and so on. K, M and G \
                  (powers of 1024) may follow the number. Without it, the archive is one file.",
            example: "haul --warc site.warc.gz --warc-max-size 1G --input-file list.txt",
            see_also: "warc",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.warc.max_size = match value.size()? {
            0 => return Err(UsageErrorReason::bad_use("no record fits into 0 bytes")),
            size => Some(size),
        };
        Ok(())
    }
}
