//! The option `--doh-url`: resolves host names with this DNS-over-HTTPS server.

use haul::dns_over_https::DnsOverHttps;
use haul::net::tls::TlsOptions;

use super::prelude::*;

pub(super) struct DohUrlFlag;

impl FlagDefinition for DohUrlFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "doh-url",
            short: None,
            syntax: FlagSyntax::Value("url"),
            category: HelpCategory::Connection,
            important: false,
            help: "Look up names by this HTTPS server",
            doc: "Looks up names by DNS over HTTPS (RFC 8484), with POST requests to this https URL. If the server does not answer, lookups fail: no other server is asked. Its certificate is checked as that of other servers, but without --insecure, --pinnedpubkey and --cert. The system's resolver looks up the host of the URL itself; /etc/hosts and --resolve still come first. An empty text restores the default.",
            example: "haul --doh-url https://dns.example/dns-query https://example.com/",
            see_also: "doh-insecure dns-servers resolve",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let url = value.text()?;
        if !url.is_empty() && DnsOverHttps::new(url, TlsOptions::default()).is_err() {
            return Err(UsageErrorReason::BadSyntax("an https URL"));
        }
        args.transfer().doh_url = (!url.is_empty()).then(|| url.to_owned());
        Ok(())
    }
}
