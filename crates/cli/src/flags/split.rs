//! `--split`.

use super::prelude::*;

pub(super) struct Split;

impl Flag for Split {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "split",
            short: None,
            takes: Takes::Value("num"),
            category: Category::Parallel,
            important: false,
            help: "Most connections for one body",
            doc: "Most connections over which parts of one body are fetched, from 1 to 256. More than one \
                  are used only where the server proves that it sends exact parts of one unchanged file, \
                  and only while they make the transfer faster; the output is the same, in order. Memory \
                  stays inside --max-memory. 1 turns splitting off. Default is what --parallel-max-host \
                  says; a number given here stands by itself.",
            example: "haul --split 1 -O https://example.com/file.tar.gz",
            see_also: &["parallel-max-host", "max-memory"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let most = value.number_in(1, 256)?;
        args.transfer().split = Some(most as usize);
        Ok(())
    }
}
