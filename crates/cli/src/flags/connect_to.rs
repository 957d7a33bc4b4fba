//! The option `--connect-to`: connects to another host or port than the URL names.

use super::colon_separated_values::{parse_port, split_at_colon};
use super::prelude::*;
use haul::request::ConnectToRule;

pub(super) struct ConnectToFlag;

impl FlagDefinition for ConnectToFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "connect-to",
            short: None,
            syntax: FlagSyntax::Value("host1:port1:host2:port2"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect to a host other than the URL's",
            doc: "Sends requests for HOST1:PORT1 over a connection to HOST2:PORT2. Everything else (Host, SNI, \
                  certificate check) stays as in the URL. An empty HOST1 or PORT1 matches all; an empty HOST2 or \
                  PORT2 keeps that of the request. IPv6 addresses stand in brackets. May be repeated; the first match \
                  is used.",
            example: "haul --connect-to example.com:443:staging.example.com:8443 https://example.com/",
            see_also: "resolve",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        // As by curl: a script's variable may hold nothing.
        if value.bytes().is_empty() && args.global.persona.is_curl() {
            return Ok(());
        }
        let entry = parse(value.text()?).ok_or(UsageErrorReason::BadSyntax("HOST1:PORT1:HOST2:PORT2"))?;
        args.transfer().options.connect_to.push(entry);
        Ok(())
    }
}

fn parse(text: &str) -> Option<ConnectToRule> {
    let (host, rest) = split_at_colon(text)?;
    let (from_port, rest) = split_at_colon(rest?)?;
    let (to_host, to_port) = split_at_colon(rest?)?;
    let named = |host: &str| (!host.is_empty()).then(|| host.to_ascii_lowercase());
    Some(ConnectToRule {
        host: named(host),
        port: parse_port(from_port)?,
        to_host: named(to_host),
        // As in curl, the last port and its colon may be missing.
        to_port: parse_port(to_port.unwrap_or_default())?,
    })
}
