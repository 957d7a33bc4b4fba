//! `-6`, `--ipv6`.

use super::prelude::*;
use crate::plan::IpVersion;

pub(super) struct Ipv6;

impl Flag for Ipv6 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ipv6",
            short: Some('6'),
            takes: Takes::Once,
            category: Category::Connection,
            important: false,
            help: "Use IPv6 addresses only",
            doc: "Resolves names to IPv6 addresses only.",
            example: "haul -6 https://example.com/",
            see_also: &["ipv4"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.transfer().ip_version = IpVersion::V6;
        Ok(())
    }
}
