//! The option `--cert-status`: requires a stapled OCSP response of the server.

use super::prelude::*;

pub(super) struct CertStatusFlag;

impl FlagDefinition for CertStatusFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cert-status",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Tls,
            important: false,
            help: "Require a good OCSP response of the server",
            doc: "Requires that the server staples an OCSP response (RFC 6066), signed by the issuer of its certificate or \
                  a responder that the issuer has certified, valid at present, and good. Otherwise the run ends with \
                  exit code 91. A resumed TLS session is not checked again.",
            example: "haul --cert-status https://example.com/",
            see_also: "crlfile cacert pinnedpubkey",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().tls.options.require_status = value.is_on();
        Ok(())
    }
}
