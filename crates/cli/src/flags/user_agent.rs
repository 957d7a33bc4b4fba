//! `-A`, `--user-agent`.

use super::field::refuse_controls;
use super::prelude::*;

pub(super) struct UserAgent;

impl Flag for UserAgent {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "user-agent",
            short: Some('A'),
            takes: Takes::Value("name"),
            category: Category::Http,
            important: true,
            help: "Send this User-Agent",
            doc: "Sends NAME as User-Agent instead of haul/VERSION; an empty NAME sends none.",
            example: "haul -A 'mybot/1.0' https://example.com/",
            see_also: &["header"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        refuse_controls(value.bytes())?;
        args.request().user_agent = Some(value.bytes().to_vec());
        Ok(())
    }
}
