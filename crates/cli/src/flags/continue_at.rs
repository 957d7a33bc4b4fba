//! `-C`, `--continue-at`.

use super::prelude::*;
use crate::plan;

pub(super) struct ContinueAt;

impl Flag for ContinueAt {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "continue-at",
            short: Some('C'),
            takes: Takes::Value("offset"),
            category: Category::Output,
            important: false,
            help: "Go on with a file that is there in part",
            doc: "Asks for the body from byte OFFSET on and appends it to the output. \"-\" takes the size \
                  of the output file as OFFSET, which needs -o or -O; in curl's place standard output has \
                  none, and all is asked for. A server that sends no ranges is an \
                  error (33), not a second copy of the beginning. The body is asked for without \
                  compression. Not with --range, --remove-on-error or --no-clobber, and \"-\" not with \
                  --remote-header-name. What haul itself left unfinished under a temporary name is resumed \
                  without this option. With -T the file is sent from OFFSET on, with Content-Range; \"-\" then sends all \
                  of it.",
            example: "haul -C - -O https://example.com/file.tar.gz",
            see_also: &["range", "remote-name", "skip-existing"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let from = match value.content()? {
            "-" => plan::ContinueAt::OutputSize,
            _ => plan::ContinueAt::Offset(value.number()?),
        };
        args.request().continue_at = Some(from);
        Ok(())
    }
}
