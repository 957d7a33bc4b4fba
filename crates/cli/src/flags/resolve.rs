//! The option `--resolve`: sets the addresses of a host, instead of asking DNS.

use super::colon_separated_values::{parse_port, split_at_colon};
use super::prelude::*;
use crate::plan::ResolveArg;
use std::net::IpAddr;

pub(super) struct ResolveFlag;

impl FlagDefinition for ResolveFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "resolve",
            short: None,
            syntax: FlagSyntax::Value("[+]host:port:addr[,addr]..."),
            category: HelpCategory::Connection,
            important: false,
            help: "Use these addresses for a host",
            doc: "Connects to these addresses for requests to HOST:PORT, without a name lookup. HOST \"*\" is every \
                  host; \"-HOST:PORT\" removes an earlier entry. A leading \"+\", which makes an entry time out in \
                  curl, changes nothing here. May be repeated.",
            example: "haul --resolve example.com:443:127.0.0.1,[::1] https://example.com/",
            see_also: "connect-to",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = value.text()?;
        // As by curl: a script's variable may hold nothing.
        if text.is_empty() && args.global.persona.is_curl() {
            return Ok(());
        }
        let form = UsageErrorReason::BadSyntax("[+]HOST:PORT:ADDRESS[,ADDRESS]... or -HOST:PORT");
        args.transfer().resolve.push(parse(text).ok_or(form)?);
        Ok(())
    }
}

fn parse(text: &str) -> Option<ResolveArg> {
    let removes = text.starts_with('-');
    let (host, rest) = split_at_colon(text.trim_start_matches(['-', '+']))?;
    let (number, addresses) = split_at_colon(rest?)?;
    let addresses = match addresses {
        None if removes => Vec::new(),
        Some(list) if !removes => list.split(',').map(address).collect::<Option<_>>()?,
        _ => return None,
    };
    let host = (!host.is_empty()).then(|| host.to_ascii_lowercase())?;
    Some(ResolveArg { host, port: parse_port(number)??, addresses })
}

fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    bare.unwrap_or(text).parse().ok()
}
