//! The option `--cookie` (`-b`): sends cookies, or names a file from which cookies are read.

use super::header_value_parser::refuse_controls;
use super::prelude::*;

pub(super) struct CookieFlag;

impl FlagDefinition for CookieFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cookie",
            short: Some('b'),
            syntax: FlagSyntax::Value("data|filename"),
            category: HelpCategory::Http,
            important: false,
            help: "Send cookies, or read them from a file",
            doc: "Text that contains \"=\", as in \"name=value; name2=value2\", is sent as Cookie to the origin of \
                  the URL, and not along a redirect to another. Other text names a file of cookies (Netscape format \
                  or Set-Cookie lines; \"-\" is standard input), each of which goes only to its own hosts. A file \
                  that does not exist counts as empty, and \"\" just keeps the cookies that servers set. The file is \
                  never written: see --cookie-jar. May be repeated.",
            example: "haul -b 'session=42' https://example.com/",
            see_also: "cookie-jar junk-session-cookies header",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = value.bytes();
        if !text.contains(&b'=') {
            let cookies = &mut args.transfer().cookies;
            match text {
                b"" => cookies.engine = true,
                _ => cookies.files.push(value.path()?),
            }
            return Ok(());
        }
        refuse_controls(text)?;
        match &mut args.request().cookie {
            Some(cookie) => {
                let begins_with_blank = matches!(text.first(), Some(b' ' | b'\t'));
                cookie.extend_from_slice(if begins_with_blank { b";" } else { b"; " });
                cookie.extend_from_slice(text);
            }
            none => *none = Some(text.to_vec()),
        }
        Ok(())
    }
}
