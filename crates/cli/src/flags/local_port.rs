//! The option `--local-port`: sets the range of local ports for connections.

use super::prelude::*;
use haul::net::local_address::PortRange;
use std::num::NonZeroU16;

pub(super) struct LocalPortFlag;

impl FlagDefinition for LocalPortFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "local-port",
            short: None,
            syntax: FlagSyntax::Value("range"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect from one of these ports",
            doc: "Connects from this local port, or from the first free one of FIRST-LAST.",
            example: "haul --local-port 9000-9100 https://example.com/",
            see_also: "interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.local_ports =
            Some(parse(value.text()?).ok_or(UsageErrorReason::bad_use("expected PORT or FIRST-LAST"))?);
        Ok(())
    }
}

fn parse(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse().ok().map(NonZeroU16::get);
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(PortRange { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_port_is_a_port_or_range() {
        assert_eq!(parse("5"), Some(PortRange { first: 5, last: 5 }));
        assert_eq!(parse("5-65535"), Some(PortRange { first: 5, last: 65_535 }));
        assert_eq!(parse("5 - 6"), Some(PortRange { first: 5, last: 6 }));
        for bad in ["", "0", "x", "5-", "-5", "6-5", "1-65536", "1-2-3"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
