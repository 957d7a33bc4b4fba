//! The option `--http2`: offers HTTP/2 in the TLS handshake, and does not use HTTP/3.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http2Flag;

impl FlagDefinition for Http2Flag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http2",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Use HTTP/2 where the server does",
            doc: "Offers HTTP/2 in the TLS handshake and falls back to HTTP/1.1; so does the default. Over plain HTTP \
                  it means HTTP/1.1: see --http2-prior-knowledge. \
                  Turns off HTTP/3.",
            example: "haul --http2 https://example.com/",
            see_also: "http1.1 http2-prior-knowledge http3",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        args.transfer().http_version = HttpVersion::Http2;
        Ok(())
    }
}
