//! `-u`, `--user`.

use super::field::refuse_controls;
use super::prelude::*;
use crate::plan::Credentials;

pub(super) struct User;

impl Flag for User {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "user",
            short: Some('u'),
            takes: Takes::Value("user:password"),
            category: Category::Auth,
            important: true,
            help: "Send user and password",
            doc: "Sends Basic credentials to the origin of the URL alone, not along a redirect \
                  elsewhere. Other users of the machine may see the command line: a config file (-K) \
                  hides it.",
            example: "haul -u me:secret https://example.com/",
            see_also: &["oauth2-bearer", "config"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let text = value.bytes();
        refuse_controls(text)?;
        let Some(colon) = text.iter().position(|&byte| byte == b':') else {
            return Err(Reason::bad_use("expected user:password; haul does not ask for a password"));
        };
        let (user, password) = (text[..colon].to_vec(), text[colon + 1..].to_vec());
        args.request().credentials = Some(Credentials::Basic { user, password });
        Ok(())
    }
}
