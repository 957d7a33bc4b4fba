//! The option `--mirror-paths`: names files after the host and the path of their URLs.

use super::prelude::*;

pub(super) struct MirrorPathsFlag;

impl FlagDefinition for MirrorPathsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "mirror-paths",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: false,
            help: "Write to files named after host and path",
            doc: "Writes each body that has no output of its own to the file HOST/PATH in the current directory or in \
                  --output-dir, and creates missing directories. A port other than the default follows the host \
                  (HOST+8080), a query the name (list.php?id=1), and an index page is index.html. Names are decoded \
                  and made safe as in --output. A directory whose name a file has is NAME.dir, and a file whose name \
                  a directory has NAME.file.",
            example: "haul --mirror-paths --output-dir mirror --input-file list.txt",
            see_also: "output remote-name output-dir",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.group().mirror_paths = value.is_on();
        Ok(())
    }
}
