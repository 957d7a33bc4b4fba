//! The option `--cookie-jar` (`-c`): writes the cookies to this file at the end.

use super::prelude::*;

pub(super) struct CookieJarFlag;

impl FlagDefinition for CookieJarFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cookie-jar",
            short: Some('c'),
            syntax: FlagSyntax::Value("filename"),
            category: HelpCategory::Http,
            important: false,
            help: "Write cookies to this file at the end",
            doc: "Keeps the cookies that servers set, sends them back, and writes all cookies held to FILE at the \
                  end, readable by its owner only; \"-\" is standard output. To read the file as well, name it in \
                  --cookie too. Many processes may share one file: each writes its own changes. A later --then \
                  inherits it.",
            example: "haul -b jar -c jar https://example.com/",
            see_also: "cookie junk-session-cookies",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let is_curl = args.global.persona.is_curl();
        let cookies = &mut args.transfer().cookies;
        match value.bytes() {
            b"" if !is_curl => cookies.engine = true,
            _ => cookies.jar = Some(value.path()?),
        }
        Ok(())
    }
}
