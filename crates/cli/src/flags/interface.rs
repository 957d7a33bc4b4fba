//! `--interface`.

use super::prelude::*;
use crate::plan;

pub(super) struct InterfaceFlag;

impl Flag for InterfaceFlag {
    fn spec(&self) -> &'static FlagSpec {
        &FlagSpec {
            long: "interface",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Connection,
            important: false,
            help: "Connect from this interface",
            doc: "Connects from this device, address or host name. \"if!NAME\" is a device, \"host!NAME\" an address \
                  or host name, \"ifhost!DEVICE!HOST\" both. Using a device may need privileges.",
            example: "haul --interface 127.0.0.1 http://localhost/",
            see_also: &["local-port"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageReason> {
        let text = value.text()?;
        args.transfer().connection.interface = match text {
            "" if args.global.persona.is_curl() => return Err(UsageReason::Blank),
            "" => None,
            text => Some(
                parse(text).ok_or(UsageReason::bad_use("expected NAME, if!NAME, host!NAME or ifhost!DEVICE!HOST"))?,
            ),
        };
        Ok(())
    }
}

fn parse(text: &str) -> Option<plan::Interface> {
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    match text.split_once('!') {
        Some(("if", name)) => named(name).map(plan::Interface::Device),
        Some(("host", name)) => named(name).map(plan::Interface::Host),
        Some(("ifhost", both)) => {
            let (device, host) = both.split_once('!')?;
            Some(plan::Interface::DeviceAndHost { device: named(device)?, host: named(host)? })
        }
        _ => named(text).map(plan::Interface::Any),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_is_may_be_said() {
        assert_eq!(parse("eth0"), Some(plan::Interface::Any("eth0".into())));
        assert_eq!(parse("if!eth0"), Some(plan::Interface::Device("eth0".into())));
        assert_eq!(parse("host!::1"), Some(plan::Interface::Host("::1".into())));
        let both = plan::Interface::DeviceAndHost { device: "eth0".into(), host: "h".into() };
        assert_eq!(parse("ifhost!eth0!h"), Some(both));
        for bad in ["", "if!", "host!", "ifhost!", "ifhost!a", "ifhost!a!", "ifhost!!b"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
