//! `-4`, `--ipv4`.

use super::prelude::*;
use crate::plan::IpVersion;

pub(super) struct Ipv4;

impl Flag for Ipv4 {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "ipv4",
            short: Some('4'),
            takes: Takes::Once,
            category: Category::Connection,
            important: false,
            help: "Use IPv4 addresses only",
            doc: "Resolves names to IPv4 addresses only.",
            example: "haul -4 https://example.com/",
            see_also: &["ipv6"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = value;
        args.transfer().ip_version = IpVersion::V4;
        Ok(())
    }
}
