//! The option `--http3`: tries HTTP/3 first, and uses TCP where it fails.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http3Flag;

impl FlagDefinition for Http3Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http3",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Try HTTP/3 first, and TCP where it fails",
            doc: "Connects to https URLs by QUIC, and by TCP too if QUIC has not connected after 200 ms; the first \
                  connection is used. An endpoint that fails is not tried again for some minutes. Without this \
                  option, HTTP/3 is used once an Alt-Svc field or an HTTPS record of the name servers offers it; \
                  --http2 and --http1.1 turn it off. Through a proxy, TCP is used.",
            example: "haul --http3 https://example.com/",
            see_also: "http3-only http2 alt-svc",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        super::http3_only::set_http3_version(args, HttpVersion::Http3)
    }
}
