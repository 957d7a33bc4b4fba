//! `-K`, `--config`.

use super::prelude::*;

pub(super) struct Config;

impl Flag for Config {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "config",
            short: Some('K'),
            takes: Takes::Value("file"),
            category: Category::General,
            important: false,
            help: "Read options from a file",
            doc: "Reads options from FILE as if they stood here: one a line, \"name = value\" or \"-x value\". Lines \
                  that begin with # are comments; values with spaces need quotes. \"-\" is standard input. A file may \
                  name other files, up to five levels deep.",
            example: "haul -K urls.txt",
            see_also: &["input-file", "disable"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.config = Some(value.path()?);
        Ok(())
    }
}
