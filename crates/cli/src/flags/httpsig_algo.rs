//! The option `--httpsig-algo`: signs requests by RFC 9421 with this algorithm.

use haul_policy::auth::SignatureAlgorithm;

use super::prelude::*;

pub(super) struct HttpsigAlgoFlag;

impl FlagDefinition for HttpsigAlgoFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "httpsig-algo",
            short: None,
            syntax: FlagSyntax::Value("name"),
            category: HelpCategory::Auth,
            important: false,
            help: "Sign requests by this algorithm",
            doc: "Signs each request by HTTP Message Signatures (RFC 9421): ed25519, which is the default, or \
                  hmac-sha256. It needs --httpsig-key and --httpsig-keyid. The method, the authority, the path and \
                  the query are signed unless --httpsig-headers names other parts. Requests to another origin than \
                  that of the URL are not signed, unless --location-trusted is given.",
            example: "haul --httpsig-algo hmac-sha256 --httpsig-key @key.hex --httpsig-keyid me https://example.com/",
            see_also: "httpsig-key httpsig-keyid httpsig-headers",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let name = value.text()?;
        let known = SignatureAlgorithm::parse(name);
        let known = known.ok_or_else(|| UsageErrorReason::bad_use("expected ed25519 or hmac-sha256"))?;
        args.request().httpsig.algorithm = Some(known);
        Ok(())
    }
}
