//! The option `--http3-only`: uses HTTP/3 and nothing else.

use super::prelude::*;
use crate::plan::HttpVersion;

pub(super) struct Http3OnlyFlag;

impl FlagDefinition for Http3OnlyFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "http3-only",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Http,
            important: false,
            help: "Use HTTP/3 and nothing else",
            doc: "Connects by QUIC only. Fails if the server does not answer or does not speak HTTP/3, for an http \
                  URL, and with a proxy, since no proxy forwards UDP.",
            example: "haul --http3-only https://example.com/",
            see_also: "http3",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let _ = value;
        set_http3_version(args, HttpVersion::Http3Only)
    }
}

/// Sets the HTTP version to one that needs HTTP/3. Fails if HTTP/3 is not built in.
pub(super) fn set_http3_version(args: &mut ParsedArgs, version: HttpVersion) -> Result<(), UsageErrorReason> {
    if !haul::HAS_HTTP3 {
        return Err(UsageErrorReason::bad_use("this build of haul has no HTTP/3: build it with the feature http3"));
    }
    args.transfer().http_version = version;
    Ok(())
}
