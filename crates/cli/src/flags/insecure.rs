//! The option `--insecure` (`-k`): does not verify the certificate of the server.

use super::prelude::*;

pub(super) struct InsecureFlag;

impl FlagDefinition for InsecureFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "insecure",
            short: Some('k'),
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Tls,
            important: true,
            help: "Do not verify the server",
            doc: "Accepts any certificate: whoever controls the network can read and change everything. A later \
                  --then inherits it.",
            example: "haul -k https://localhost/",
            see_also: "cacert",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.verify = !value.is_on();
        Ok(())
    }
}
