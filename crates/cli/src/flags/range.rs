//! `-r`, `--range`.

use super::field::refuse_controls;
use super::prelude::*;

pub(super) struct Range;

impl Flag for Range {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "range",
            short: Some('r'),
            takes: Takes::Value("range"),
            category: Category::Http,
            important: false,
            help: "Fetch only some bytes",
            doc: "Sends \"Range: bytes=RANGE\": \"0-499\", \"500-\", \"-500\", or several with commas, whose \
                  reply is printed as it comes.",
            example: "haul -r 0-499 https://example.com/file",
            see_also: &["header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let range = value.content()?;
        refuse_controls(range.as_bytes())?;
        let is_number = !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit());
        let open = if is_number { "-" } else { "" };
        if is_number {
            args.warn("A specified range MUST include at least one dash '-'. Appending one for you!");
        }
        args.request().range = Some(format!("{range}{open}"));
        Ok(())
    }
}
