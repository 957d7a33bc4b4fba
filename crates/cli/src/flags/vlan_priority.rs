//! The option `--vlan-priority`: sets the priority of outgoing packets.

use super::prelude::*;

pub(super) struct VlanPriorityFlag;

impl FlagDefinition for VlanPriorityFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "vlan-priority",
            short: None,
            syntax: FlagSyntax::Value("priority"),
            category: HelpCategory::Connection,
            important: false,
            help: "Priority of outgoing packets",
            doc: "Sets the priority of outgoing packets, 0 to 7 (IEEE 802.1Q), where the system supports it (Linux: \
                  SO_PRIORITY). The default is the system's.",
            example: "haul --vlan-priority 4 https://example.com/",
            see_also: "ip-tos",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.connect.priority = Some(value.number_in(0, 7)? as u8);
        Ok(())
    }
}
