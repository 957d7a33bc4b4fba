//! `--input-file`.

use super::prelude::*;

pub(super) struct InputFile;

impl Flag for InputFile {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "input-file",
            short: None,
            takes: Takes::Value("file"),
            category: Category::Parallel,
            important: true,
            help: "Fetch the URLs in a file, one a line",
            doc: "Reads URLs from FILE, or from standard input for \"-\", and starts with the first line. Memory does \
                  not grow with the length of the list. Empty lines and lines that begin with # are skipped.",
            example: "haul --input-file list.txt",
            see_also: &["config", "url", "parallel-max"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let file = value.content()?;
        args.group().urls.push_input_file(file);
        Ok(())
    }
}
