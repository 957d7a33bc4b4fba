//! `-b`, `--cookie`.

use super::field::refuse_controls;
use super::prelude::*;

pub(super) struct Cookie;

impl Flag for Cookie {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "cookie",
            short: Some('b'),
            takes: Takes::Value("data"),
            category: Category::Http,
            important: false,
            help: "Send cookies",
            doc: "Sends \"name=value; name2=value2\" as Cookie. It goes to the origin of the URL alone, \
                  not along a redirect elsewhere. May be repeated. Cookie files are not supported in \
                  this version.",
            example: "haul -b 'session=42' https://example.com/",
            see_also: &["header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = value.bytes();
        if !text.contains(&b'=') {
            return Err(Reason::bad_use("cookie files are not supported in this version of haul"));
        }
        refuse_controls(text)?;
        match &mut args.request().cookie {
            Some(cookie) => {
                cookie.extend_from_slice(b"; ");
                cookie.extend_from_slice(text);
            }
            none => *none = Some(text.to_vec()),
        }
        Ok(())
    }
}
