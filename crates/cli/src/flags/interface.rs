//! The option `--interface`: sets the local network device or address of connections.

use super::prelude::*;

pub(super) struct InterfaceFlag;

impl FlagDefinition for InterfaceFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "interface",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect from this interface",
            doc: "Connects from this device, address or host name. \"if!NAME\" is a device, \"host!NAME\" an address \
                  or host name, \"ifhost!DEVICE!HOST\" both. Using a device may need privileges.",
            example: "haul --interface 127.0.0.1 http://localhost/",
            see_also: "local-port",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().interface = match value.text()? {
            "" if args.global.persona.is_curl() => return Err(UsageErrorReason::Blank),
            "" => None,
            text if is_interface(text) => Some(text.to_owned()),
            _ => return Err(UsageErrorReason::bad_use("expected NAME, if!NAME, host!NAME or ifhost!DEVICE!HOST")),
        };
        Ok(())
    }
}

/// Returns true if `text` can be a value of `--interface`: a name, or names after `if!`, `host!` or
/// `ifhost!`, none of them empty. The engine decides later whether a name without a prefix is a
/// device or a host.
fn is_interface(text: &str) -> bool {
    match text.split_once('!') {
        Some(("if" | "host", name)) => !name.is_empty(),
        Some(("ifhost", both)) => {
            both.split_once('!').is_some_and(|(device, host)| !device.is_empty() && !host.is_empty())
        }
        _ => !text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_option_with_empty_part_is_refused() {
        for good in ["eth0", "if!eth0", "host!::1", "ifhost!eth0!h"] {
            assert!(is_interface(good), "{good}");
        }
        for bad in ["", "if!", "host!", "ifhost!", "ifhost!a", "ifhost!a!", "ifhost!!b"] {
            assert!(!is_interface(bad), "{bad}");
        }
    }
}
