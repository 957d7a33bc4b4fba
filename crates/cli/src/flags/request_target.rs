//! `--request-target`.

use super::field::refuse_controls;
use super::prelude::*;

pub(super) struct RequestTarget;

impl Flag for RequestTarget {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "request-target",
            short: None,
            takes: Takes::Value("path"),
            category: Category::Http,
            important: false,
            help: "Send this as the request target",
            doc: "Sends PATH in the request line instead of the path and query of the URL, for example \"*\" for \
                  OPTIONS.",
            example: "haul -X OPTIONS --request-target '*' https://example.com/",
            see_also: &["request", "path-as-is"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let target = value.content()?;
        refuse_controls(target.as_bytes())?;
        args.request().request_target = Some(target.to_owned());
        Ok(())
    }
}
