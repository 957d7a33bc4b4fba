//! `--proto-redir`.

use super::prelude::*;
use super::proto::read;

pub(super) struct ProtoRedir;

impl Flag for ProtoRedir {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proto-redir",
            short: None,
            takes: Takes::Value("protocols"),
            category: Category::Connection,
            important: false,
            help: "Follow redirects to these protocols only",
            doc: "Allows redirects these schemes alone, of those that --proto allows. LIST has words \
                  between commas: \"https\" or \"+https\" allows, \"-http\" forbids, \"=https\" allows \
                  only that, \"all\" is both. Default http and https.",
            example: "haul --proto-redir =https https://example.com/",
            see_also: &["proto", "location"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.redirected = read(value, args)?;
        Ok(())
    }
}
