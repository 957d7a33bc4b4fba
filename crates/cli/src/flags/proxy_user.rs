//! The option `--proxy-user` (`-U`): sends this user and password to the proxy.

use super::prelude::*;
use super::user::parse_user_option;

pub(super) struct ProxyUserFlag;

impl FlagDefinition for ProxyUserFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-user",
            short: Some('U'),
            syntax: FlagSyntax::Value("user[:password]"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Send user and password to the proxy",
            doc: "User and password for the proxy only, unless there are some in its URL. Sent by Basic, by \
                  what --proxy-digest or --proxy-anyauth allow, or by SOCKS. Without a colon the password is asked \
                  for on the terminal.",
            example: "haul -U me:secret -x http://proxy.example:3128 https://example.com/",
            see_also: "proxy proxy-basic proxy-digest user",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().user = Some(parse_user_option(value)?);
        Ok(())
    }
}
