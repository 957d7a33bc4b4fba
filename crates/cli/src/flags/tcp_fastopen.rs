//! `--tcp-fastopen`.

use super::prelude::*;

pub(super) struct TcpFastopen;

impl Flag for TcpFastopen {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "tcp-fastopen",
            short: None,
            takes: Takes::Switch,
            category: Category::General,
            important: false,
            help: "Nothing",
            doc: "Taken for scripts written for curl. It asks for a shorter way to a connection; the usual one leads there, too.",
            example: "haul --tcp-fastopen https://example.com/",
            see_also: &["tcp-nodelay"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let _ = (value, args);
        Ok(())
    }
}
