//! The option `--service-name`: sets the service in the server's Kerberos name.

use super::prelude::*;

pub(super) struct ServiceNameFlag;

impl FlagDefinition for ServiceNameFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "service-name",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Auth,
            important: false,
            help: "Kerberos service of the server for --negotiate",
            doc: "Sets the service in the name of the server's Kerberos principal for --negotiate, as in \"NAME/host\". The \
                  default is HTTP.",
            example: "haul --negotiate --service-name web https://intranet.example/",
            see_also: "negotiate proxy-service-name",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.request().negotiate.service = Some(value.content()?.to_owned());
        Ok(())
    }
}
