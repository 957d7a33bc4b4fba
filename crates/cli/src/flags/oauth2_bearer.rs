//! `--oauth2-bearer`.

use super::field::refuse_controls;
use super::prelude::*;
use crate::plan::Credentials;

pub(super) struct Oauth2Bearer;

impl Flag for Oauth2Bearer {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "oauth2-bearer",
            short: None,
            takes: Takes::Value("token"),
            category: Category::Auth,
            important: false,
            help: "Send a bearer token",
            doc: "Sends \"Authorization: Bearer TOKEN\" to the origin of the URL alone. Takes the place \
                  of -u.",
            example: "haul --oauth2-bearer TOKEN https://example.com/",
            see_also: &["user"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let token = value.content()?;
        refuse_controls(token.as_bytes())?;
        args.request().credentials = Some(Credentials::Bearer(token.to_owned()));
        Ok(())
    }
}
