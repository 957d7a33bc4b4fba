//! The option `--hsts`: keeps the hosts that must be reached by https (RFC 6797) in this file.

use super::prelude::*;
use crate::plan::StateFileArg;

pub(super) struct HstsFlag;

impl FlagDefinition for HstsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "hsts",
            short: None,
            syntax: FlagSyntax::Value("filename"),
            category: HelpCategory::Http,
            important: false,
            help: "Remember https-only hosts in this file",
            doc: "Uses https alone for hosts that asked for it (Strict-Transport-Security, RFC 6797), in all runs \
                  that share FILE. It is read at the start and written at the end, and need not exist; \"\" keeps the \
                  entries in memory for this run. By default nothing is remembered.",
            example: "haul --hsts known https://example.com/",
            see_also: "proto alt-svc",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().hsts = parse_state_file(value)?;
        Ok(())
    }
}

/// Parses the value of `--hsts` or `--alt-svc`: a file name, or an empty text if the entries are
/// kept only in memory.
pub(super) fn parse_state_file(value: FlagValue<'_>) -> Result<StateFileArg, UsageErrorReason> {
    match value.bytes() {
        b"" => Ok(StateFileArg::Memory),
        _ => value.path().map(StateFileArg::File),
    }
}
