//! The option `--socks5-basic`: allows user and password with a SOCKS5 proxy. It has no effect,
//! because haul always allows them.

use super::prelude::*;

pub(super) struct Socks5BasicFlag;

impl FlagDefinition for Socks5BasicFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5-basic",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Name a user to SOCKS5 proxies",
            doc: "Allows user and password with a SOCKS5 proxy. haul always does.",
            example: "haul --socks5-basic --socks5 proxy:1080 https://example.com/",
            see_also: "socks5",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = (value, args);
        Ok(())
    }
}
