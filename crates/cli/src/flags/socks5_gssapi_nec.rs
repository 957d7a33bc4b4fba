//! The option `--socks5-gssapi-nec`: exchanges the level of protection as NEC's SOCKS servers do.

use super::prelude::*;

pub(super) struct Socks5GssapiNecFlag;

impl FlagDefinition for Socks5GssapiNecFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "socks5-gssapi-nec",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Proxy,
            important: false,
            help: "Level of protection in NEC's form",
            doc: "With --socks5-gssapi, exchanges the level of protection with the proxy without protecting that message, as \
                  the implementation of NEC does.",
            example: "haul --socks5-gssapi --socks5-gssapi-nec --socks5 proxy.example:1080 https://example.com/",
            see_also: "socks5-gssapi",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().socks_nec = value.is_on();
        Ok(())
    }
}
