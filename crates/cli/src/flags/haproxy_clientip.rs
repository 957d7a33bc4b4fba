//! `--haproxy-clientip`.

use super::prelude::*;

pub(super) struct HaproxyClientip;

impl Flag for HaproxyClientip {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "haproxy-clientip",
            short: None,
            takes: Takes::Value("ip"),
            category: Category::Connection,
            important: false,
            help: "Send a PROXY line with this address",
            doc: "Like --haproxy-protocol, with this address as both source and destination, as curl does.",
            example: "haul --haproxy-clientip 192.0.2.1 http://localhost/",
            see_also: &["haproxy-protocol"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let address = value.content()?.parse().map_err(|_| Reason::bad_use("expected an IP address"))?;
        let connection = &mut args.transfer().connection;
        connection.haproxy_protocol = true;
        connection.haproxy_client = Some(address);
        Ok(())
    }
}
