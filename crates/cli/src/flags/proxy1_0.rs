//! The option `--proxy1.0`: uses this HTTP proxy, and sends it `CONNECT` as HTTP/1.0.

use super::prelude::*;
use crate::build_plan::credentials::refuse_proxy;
use haul_policy::proxy::Proxy;

pub(super) struct Proxy10Flag;

impl FlagDefinition for Proxy10Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy1.0",
            short: None,
            syntax: FlagSyntax::Value("url"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Use this HTTP proxy, with HTTP/1.0",
            doc: "Like --proxy, but CONNECT requests are HTTP/1.0.",
            example: "haul --proxy1.0 proxy:3128 http://example.com/",
            see_also: "proxy",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().http10 = true;
        args.proxy().proxy = Some(Some(Proxy::parse(value.content()?).map_err(refuse_proxy)?));
        Ok(())
    }
}
