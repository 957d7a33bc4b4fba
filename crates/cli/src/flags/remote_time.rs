//! `-R`, `--remote-time`.

use super::prelude::*;

pub(super) struct RemoteTime;

impl Flag for RemoteTime {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "remote-time",
            short: Some('R'),
            takes: Takes::Switch,
            category: Category::Output,
            important: false,
            help: "Give files the date of the reply",
            doc: "Sets the modification time of the file to the Last-Modified of the reply, if there is one.",
            example: "haul -R -O https://example.com/file",
            see_also: &["time-cond", "remote-name"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.group().remote_time = value.on();
        Ok(())
    }
}
