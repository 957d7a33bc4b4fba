//! `--proto`.

use super::prelude::*;
use crate::usage::printable;
use haul_policy::protocols::Protocols;

pub(super) struct Proto;

impl Flag for Proto {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "proto",
            short: None,
            takes: Takes::Value("protocols"),
            category: Category::Connection,
            important: false,
            help: "Use these protocols only",
            doc: "Allows URLs and redirects these schemes alone; others fail with 1. LIST has words \
                  between commas: \"https\" or \"+https\" allows, \"-http\" forbids, \"=https\" allows \
                  only that, \"all\" is both. Default http and https; in curl's place files too.",
            example: "haul --proto =https https://example.com/",
            see_also: &["proto-redir", "proto-default"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.protocols = read(value, args, Protocols::default(), "--proto")?;
        Ok(())
    }
}

/// A list of protocols, with a warning for each word that is none.
pub(super) fn read(
    value: FlagValue<'_>,
    args: &mut LowArgs,
    before: Protocols,
    option: &str,
) -> Result<Protocols, Reason> {
    let (allowed, unknown) = before.with(value.content()?);
    for word in unknown {
        args.warn(format!("unrecognized protocol '{}' of {option}", printable(word.as_bytes())));
    }
    Ok(allowed)
}
