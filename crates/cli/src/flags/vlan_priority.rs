//! `--vlan-priority`.

use super::prelude::*;

pub(super) struct VlanPriority;

impl Flag for VlanPriority {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "vlan-priority",
            short: None,
            takes: Takes::Value("priority"),
            category: Category::Connection,
            important: false,
            help: "Priority of outgoing packets",
            doc: "Sets the priority of outgoing packets, 0 to 7 (IEEE 802.1Q), where the system supports it (Linux: \
                  SO_PRIORITY). The default is the system's.",
            example: "haul --vlan-priority 4 https://example.com/",
            see_also: &["ip-tos"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().connection.priority = Some(value.number_in(0, 7)? as u8);
        Ok(())
    }
}
