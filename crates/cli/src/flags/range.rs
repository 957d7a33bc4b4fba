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
            doc: "Sends \"Range: bytes=RANGE\": \"0-499\", \"500-\", \"-500\", or several separated by commas, whose \
                  reply is printed as it arrives.",
            example: "haul -r 0-499 https://example.com/file",
            see_also: &["header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let mut range = value.content()?.to_owned();
        refuse_controls(range.as_bytes())?;
        if !range.is_empty() && range.bytes().all(|byte| byte.is_ascii_digit()) {
            args.warn("A specified range MUST include at least one dash '-'. Appending one for you!");
            range.push('-');
        }
        args.request().range = Some(range);
        Ok(())
    }
}
