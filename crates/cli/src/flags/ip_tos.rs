//! The option `--ip-tos`: sets the type of service of outgoing IP packets.

use super::prelude::*;

/// The names for values of the type of service, sorted: DSCPs (RFC 2474, RFC 2597, RFC 3246, RFC
/// 5865, RFC 8622), ECN (RFC 3168 section 5) and the older names of RFC 1349.
const NAMES: [(&str, u8); 31] = [
    ("AF11", 0x28),
    ("AF12", 0x30),
    ("AF13", 0x38),
    ("AF21", 0x48),
    ("AF22", 0x50),
    ("AF23", 0x58),
    ("AF31", 0x68),
    ("AF32", 0x70),
    ("AF33", 0x78),
    ("AF41", 0x88),
    ("AF42", 0x90),
    ("AF43", 0x98),
    ("CE", 0x03),
    ("CS0", 0x00),
    ("CS1", 0x20),
    ("CS2", 0x40),
    ("CS3", 0x60),
    ("CS4", 0x80),
    ("CS5", 0xa0),
    ("CS6", 0xc0),
    ("CS7", 0xe0),
    ("ECT0", 0x02),
    ("ECT1", 0x01),
    ("EF", 0xb8),
    ("LE", 0x04),
    ("LOWCOST", 0x02),
    ("LOWDELAY", 0x10),
    ("MINCOST", 0x02),
    ("RELIABILITY", 0x04),
    ("THROUGHPUT", 0x08),
    ("VOICE-ADMIT", 0xb0),
];

pub(super) struct IpTosFlag;

impl FlagDefinition for IpTosFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ip-tos",
            short: None,
            syntax: FlagSyntax::Value("value"),
            category: HelpCategory::Connection,
            important: false,
            help: "Type of service of outgoing packets",
            doc: "Sets the type of service (IPv4) or traffic class (IPv6) of outgoing packets: a number from 0 to \
                  255, or one of AF11 to AF43, CS0 to CS7, EF, LE, VOICE-ADMIT, ECT0, ECT1, CE, LOWCOST, LOWDELAY, \
                  MINCOST, RELIABILITY, THROUGHPUT. The default is the system's. If the system does not allow it, \
                  packets go unmarked.",
            example: "haul --ip-tos CS5 https://example.com/",
            see_also: "vlan-priority interface",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let name = value.content()?;
        let service = match NAMES.binary_search_by(|(known, _)| (*known).cmp(name)) {
            Ok(at) => NAMES[at].1,
            Err(_) => value.number_in(0, 0xff)? as u8,
        };
        args.transfer().options.connect.type_of_service = Some(service);
        Ok(())
    }
}
