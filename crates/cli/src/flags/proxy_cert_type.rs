//! The option `--proxy-cert-type`: sets the format of the client certificate for the proxy.

use super::prelude::*;

pub(super) struct ProxyCertTypeFlag;

impl FlagDefinition for ProxyCertTypeFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "proxy-cert-type",
            short: None,
            syntax: FlagSyntax::Value("type"),
            category: HelpCategory::Proxy,
            important: false,
            help: "Format of the client certificate (proxy)",
            doc: "Format of --proxy-cert: PEM, which is the default, DER or P12 (PKCS#12, with the key). ENG and PROV \
                  are not supported. haul finds out which of the three a file is in.",
            example: "haul --proxy-cert-type DER --proxy-cert me.der --proxy-key me.key -x https://proxy.example https://example.com/",
            see_also: "proxy-cert proxy-key-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.proxy().tls.client.format = super::cert_type::format(value)?;
        Ok(())
    }
}
