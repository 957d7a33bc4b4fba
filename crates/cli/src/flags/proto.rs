//! The option `--proto`: sets the schemes that URLs may have.

use super::prelude::*;
use crate::usage_error::printable;
use haul_policy::protocols::{ProtocolListError, ProtocolSet};

pub(super) struct ProtoFlag;

impl FlagDefinition for ProtoFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proto",
            short: None,
            syntax: FlagSyntax::Value("protocols"),
            category: HelpCategory::Connection,
            important: false,
            help: "Use these protocols only",
            doc: "Allows only these schemes, for URLs and redirects; others fail with 1. The value is a list of words \
                  separated by commas: \"https\" or \"+https\" allows, \"-http\" forbids, \"=https\" allows only that \
                  one, \"all\" allows all. An unknown word, or a list that allows nothing, is an error. Default http \
                  and https; in curl's place file too.",
            example: "haul --proto =https https://example.com/",
            see_also: "proto-redir proto-default",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().redirect.protocols = parse_protocols(value, args)?;
        Ok(())
    }
}

/// Parses a list of schemes, such as `=https` or `-http`.
pub(super) fn parse_protocols(value: FlagValue<'_>, args: &ParsedArgs) -> Result<ProtocolSet, UsageErrorReason> {
    if value.bytes().is_empty() && args.global.persona.is_curl() {
        return Ok(ProtocolSet::default());
    }
    ProtocolSet::default().with_list(value.content()?).map_err(|error| match error {
        ProtocolListError::Unknown(word) => {
            UsageErrorReason::bad_use(format!("unrecognized protocol '{}'", printable(word.as_bytes())))
        }
        ProtocolListError::Nothing => UsageErrorReason::bad_use("no protocol is left"),
    })
}
