//! The option `--remote-name` (`-O`): writes the body to a file that is named after the URL.

use super::prelude::*;
use crate::plan::OutputArg;

pub(super) struct RemoteNameFlag;

impl FlagDefinition for RemoteNameFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "remote-name",
            short: Some('O'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Output,
            important: true,
            help: "Write to a file named as in the URL",
            doc: "Writes the body of the next URL that has no output yet to a file named after the last part of the \
                  URL's path, in the current directory or in --output-dir. The name is percent-decoded; \"_\" stands \
                  for what could lead out of the directory (in curl's place, the name stays as it is). Behind --then, each page of that stage \
                  gets its own file. Two URLs of a run never replace each other's file: the second fails (23), or \
                  gets a number by --no-clobber.",
            example: "haul -O https://example.com/file.tar.gz",
            see_also: "remote-name-all output output-dir",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let output = match value.is_on() {
            true => OutputArg::RemoteName,
            // Nothing for curl to undo: the place stays free for an output that follows.
            false if args.global.persona.is_curl() && !args.group().is_remote_named(usize::MAX) => return Ok(()),
            false => OutputArg::Stdout,
        };
        args.push_output(output);
        Ok(())
    }
}
