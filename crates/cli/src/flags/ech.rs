//! The option `--ech`: sets whether connections use Encrypted Client Hello.

use haul::net::tls::EchPolicy;

use super::prelude::*;

pub(super) struct EchFlag;

impl FlagDefinition for EchFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "ech",
            short: None,
            syntax: FlagSyntax::Value("config"),
            category: HelpCategory::Tls,
            important: false,
            help: "Encrypt the server's name in TLS",
            doc: "Encrypts the server's name in the TLS handshake by Encrypted Client Hello (RFC 9849). \"true\" does so if the \
                  server's keys are known, \"hard\" fails without them (exit 35), \"grease\" sends random bytes in place of \
                  an encrypted name, and \"false\" (the default) sends nothing. The keys come from the HTTPS record of the \
                  host, for which name servers are asked (see --doh-url and --dns-servers), or from \"ecl:BASE64\" or \
                  \"ecl:@FILE\", an ECHConfigList, which means \"hard\" unless another --ech says less. A server without \
                  this key ends the run with exit code 101; if it sends other keys, haul tries them once. Connections that \
                  send any of this need TLS 1.3.",
            example: "haul --ech true --doh-url https://dns.example/dns-query https://example.com/",
            see_also: "doh-url dns-servers tls-max",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let text = value.content()?;
        let begins = |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        let ech = &mut args.transfer().tls.ech;
        ech.policy = Some(match text {
            "false" => EchPolicy::Off,
            "grease" => EchPolicy::Grease,
            "true" => EchPolicy::Try,
            "hard" => EchPolicy::Require,
            _ if begins("ecl:") && text.len() > 4 => {
                ech.config_list = Some(text[4..].to_owned());
                return Ok(());
            }
            _ if begins("pn:") => {
                return Err(UsageErrorReason::bad_use(
                    "rustls sends the public name of the ECHConfigList, and no other",
                ));
            }
            _ => return Err(UsageErrorReason::bad_use("expected false, grease, true, hard or ecl:BASE64")),
        });
        Ok(())
    }
}
