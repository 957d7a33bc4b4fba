//! The option `--alt-svc`: keeps alternative services (RFC 7838) in this file.

use super::prelude::*;

pub(super) struct AltSvcFlag;

impl FlagDefinition for AltSvcFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "alt-svc",
            short: None,
            syntax: FlagSyntax::Value("filename"),
            category: HelpCategory::Http,
            important: false,
            help: "Remember alternative services in this file",
            doc: "Remembers in FILE where else an origin is served (Alt-Svc, RFC 7838) and sends requests there, over \
                  HTTP/1.1, HTTP/2 or HTTP/3. If the alternative fails, the request goes to the origin. Not used with \
                  --insecure or through a proxy. FILE is read at the start and written at the end, and need not \
                  exist; \"\" keeps the entries in memory for this run. By default nothing is remembered.",
            example: "haul --alt-svc known https://example.com/",
            see_also: "proto hsts",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().alt_svc = super::hsts::parse_state_file(value)?;
        Ok(())
    }
}
