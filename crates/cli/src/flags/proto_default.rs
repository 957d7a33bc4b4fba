//! `--proto-default`.

use super::prelude::*;
use haul_policy::Scheme;

pub(super) struct ProtoDefault;

impl Flag for ProtoDefault {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proto-default",
            short: None,
            takes: Takes::Value("protocol"),
            category: Category::Connection,
            important: false,
            help: "Protocol of URLs without one",
            doc: "Scheme of URLs that have none: http, which is the default, or https.",
            example: "haul --proto-default https example.com",
            see_also: &["proto"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.default_scheme = match value.content()?.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(Reason::Protocol),
        };
        Ok(())
    }
}
