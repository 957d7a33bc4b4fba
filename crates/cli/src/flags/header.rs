//! `-H`, `--header`.

use super::field;
use super::prelude::*;
use crate::args::{HeaderLow, TextOrFile};

pub(super) struct Header;

impl Flag for Header {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "header",
            short: Some('H'),
            takes: Takes::Value("header/@file"),
            category: Category::Http,
            important: true,
            help: "Send a header",
            doc: "Sends the field \"Name: value\", in place of the one of that name that haul would send. \"Name:\" \
                  removes that field, \"Name;\" sends it empty. \"@file\" reads one field a line. Values with CR, LF \
                  or NUL are refused. Authorization, Cookie and fields that hold keys of well-known services \
                  (X-Api-Key, DD-API-KEY, X-Vault-Token and the like) do not follow a redirect to another origin. In \
                  curl's place only Authorization and Cookie stay. Values of fields whose names look secret are blanked \
                  in the process list.",
            example: "haul -H 'Accept: text/html' -H 'User-Agent:' https://example.com/",
            see_also: &["user-agent", "referer", "cookie"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        if let Some(header) = read(value, args, "-H")? {
            args.request().fields.push(header);
        }
        Ok(())
    }
}

/// The value of `-H` or `--proxy-header`; one that is no header is warned about.
pub(super) fn read(value: FlagValue<'_>, args: &mut LowArgs, option: &str) -> Result<Option<HeaderLow>, Reason> {
    Ok(match TextOrFile::new(value.bytes())? {
        TextOrFile::File(path) => Some(HeaderLow::File(path)),
        TextOrFile::Text(text) => {
            let field = field::parse(&text)?;
            if field.is_none() {
                args.warn(format!("a {option} value does not look like a header; it is left out"));
            }
            field.map(HeaderLow::Field)
        }
    })
}
