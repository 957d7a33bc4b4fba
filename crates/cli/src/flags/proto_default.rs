//! The option `--proto-default`: sets the scheme of URLs without one.

use super::prelude::*;
use haul_policy::Scheme;

pub(super) struct ProtoDefaultFlag;

impl FlagDefinition for ProtoDefaultFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proto-default",
            short: None,
            syntax: FlagSyntax::Value("protocol"),
            category: HelpCategory::Connection,
            important: false,
            help: "Protocol of URLs without one",
            doc: "Scheme of URLs that have none: http, which is the default, or https; in curl's place file too.",
            example: "haul --proto-default https example.com",
            see_also: "proto",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let is_curl = args.global.persona.is_curl();
        let redirect = &mut args.transfer().redirect;
        redirect.default_file = false;
        match value.content()?.to_ascii_lowercase().as_str() {
            "http" => redirect.default_scheme = Scheme::Http,
            "https" => redirect.default_scheme = Scheme::Https,
            "file" if is_curl => redirect.default_file = true,
            _ => return Err(UsageErrorReason::Protocol),
        }
        Ok(())
    }
}
