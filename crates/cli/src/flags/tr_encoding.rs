//! The option `--tr-encoding`: asks for a compressed transfer coding (`TE: gzip`).

use super::prelude::*;

pub(super) struct TrEncodingFlag;

impl FlagDefinition for TrEncodingFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "tr-encoding",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Ask for a compressed transfer",
            doc: "Asks for a compressed transfer (\"TE: gzip\", RFC 9110 section 10.1.4) and undoes what \
                  Transfer-Encoding names. Few servers do this; most compress the content instead (--compressed).",
            example: "haul --tr-encoding https://example.com/",
            see_also: "compressed",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.deviations.codings = value.is_on();
        Ok(())
    }
}
