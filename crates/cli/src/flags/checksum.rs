//! The option `--checksum`: verifies the checksum of the body, which is given directly or in a
//! list.

use super::prelude::*;
use crate::checksum::ChecksumArgError;

pub(super) struct ChecksumFlag;

impl FlagDefinition for ChecksumFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "checksum",
            short: None,
            syntax: FlagSyntax::Value("algorithm:hex"),
            category: HelpCategory::Output,
            important: false,
            help: "Verify the checksum of a body",
            doc: "Computes the checksum of the body as it is written and fails if it differs from the one given; the \
                  file then does not get its name, and its content stays as .NAME.haul-part unless --remove-on-error is \
                  given. Give either ALGORITHM:HEX for one URL, with sha256, sha384 or \
                  sha512 (or sha1 if nothing better is published: it detects damage, not malice), or the URL (http, \
                  https) or name of a list as written by sha256sum. In a list the entry counts whose path has the \
                  longest end in common with that of the URL, so that names may repeat in folders. The checksum \
                  covers the whole file, even where -C appends to it, and what is written: with --compressed, the \
                  decoded body. Not with --extract.",
            example: "haul --checksum https://example.com/SHA256SUMS -O https://example.com/file.iso",
            see_also: "remote-name output",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let checksum =
            value.content()?.parse().map_err(|flaw: ChecksumArgError| UsageErrorReason::bad_use(flaw.to_string()))?;
        args.group().checksum = Some(checksum);
        Ok(())
    }
}
