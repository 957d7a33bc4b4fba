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
                  only that, \"all\" is all. A word that is no protocol, and a list that allows none, is \
                  an error. Default http and https; in curl's place files too.",
            example: "haul --proto =https https://example.com/",
            see_also: &["proto-redir", "proto-default"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.transfer().redirect.protocols = read(value)?;
        Ok(())
    }
}

/// A list of protocols. A word that is none may have been meant to forbid one, and what allows nothing is of no use.
pub(super) fn read(value: FlagValue<'_>) -> Result<Protocols, Reason> {
    let list = Protocols::default().with(value.content()?);
    if let Some(word) = list.unknown.first() {
        return Err(Reason::bad_use(format!("unrecognized protocol '{}'", printable(word.as_bytes()))));
    }
    if list.is_empty {
        return Err(Reason::bad_use("it leaves no protocol"));
    }
    Ok(list.allowed)
}
