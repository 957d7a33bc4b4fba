//! `--haproxy-protocol`.

use super::prelude::*;

pub(super) struct HaproxyProtocol;

impl Flag for HaproxyProtocol {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "haproxy-protocol",
            short: None,
            takes: Takes::Switch,
            category: Category::Connection,
            important: false,
            help: "Send a PROXY line on each connection",
            doc: "Sends a line of HAProxy's PROXY protocol, version 1, with this client's address and port, before \
                  anything else on a connection.",
            example: "haul --haproxy-protocol http://localhost/",
            see_also: &["haproxy-clientip"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().connection.haproxy_protocol = value.on();
        Ok(())
    }
}
