//! The values that shells offer after an option: methods, versions, names of ciphers.

/// The values that shells offer after options. Each entry has an option's long name and the values.
const VALUES: &[(&str, &[&str])] = &[
    ("cert-type", &["PEM", "DER", "P12"]),
    ("checksum", &["sha256:", "sha384:", "sha512:", "sha1:"]),
    ("ciphers", TLS12_CIPHERS),
    ("curves", &["X25519", "P-256", "P-384", "X25519MLKEM768"]),
    ("delegation", &["none", "policy", "always"]),
    ("events", &["-"]),
    ("help", SUBJECTS),
    ("httpsig-algo", &["ed25519", "hmac-sha256"]),
    ("key-type", &["PEM", "DER"]),
    ("proto", &["=https", "=http", "=http,https"]),
    ("proto-default", &["https", "http"]),
    ("proto-redir", &["=https", "=http,https"]),
    ("proxy-cert-type", &["PEM", "DER", "P12"]),
    ("proxy-ciphers", TLS12_CIPHERS),
    ("proxy-key-type", &["PEM", "DER"]),
    ("proxy-tls13-ciphers", TLS13_CIPHERS),
    ("request", &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"]),
    ("retry", &["0", "1", "3", "5", "10"]),
    ("tls-max", &["1.2", "1.3", "default"]),
    ("tls13-ciphers", TLS13_CIPHERS),
    ("trace-config", &["all", "ids", "time"]),
];

const TLS12_CIPHERS: &[&str] = &[
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
];

const TLS13_CIPHERS: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// The subjects of `--help` other than options. A test compares them with the help categories.
const SUBJECTS: &[&str] = &[
    "all",
    "category",
    "auth",
    "connection",
    "extract",
    "general",
    "http",
    "limits",
    "output",
    "parallel",
    "post",
    "proxy",
    "tls",
    "verbose",
];

/// The subcommands, which are the first word after `haul`.
pub(super) const SUBCOMMANDS: &[(&str, &str)] = &[
    ("curl", "Behave as curl does"),
    ("doctor", "Show what happens when a URL is fetched"),
    ("fetch", "Behave as FreeBSD's fetch does"),
    ("ftp", "Behave as OpenBSD's ftp does"),
    ("job", "Show and change jobs"),
];

/// The subcommands of `haul job`, which are the second word after `haul`.
pub(super) const JOB_COMMANDS: &[&str] = &["status", "list", "retry", "report", "vacuum"];

/// Returns the values that shells offer after an option. The slice is empty if they offer no
/// values.
pub(super) fn values_of_option(long: &str) -> &'static [&'static str] {
    VALUES.iter().find(|(name, _)| *name == long).map_or(&[], |(_, values)| values)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::file_and_environment_access::SystemFilesAndEnvironment;
    use crate::flags::{FLAGS, HelpCategory};
    use crate::parse::parse_as;
    use crate::program_persona::ProgramPersona;

    #[test]
    fn offered_values_are_accepted_by_their_options() {
        for (option, values) in VALUES {
            assert!(FLAGS.iter().any(|flag| flag.spec().long == *option), "--{option} does not exist");
            for value in *values {
                let value = if *option == "checksum" {
                    format!("{value}{}", "0".repeat(digits(value)))
                } else {
                    (*value).to_owned()
                };
                let words = [format!("--{option}"), value.clone(), "http://h/".to_owned()];
                let parsed = parse_as(
                    ProgramPersona::Haul,
                    words.iter().map(OsString::from).collect::<Vec<_>>(),
                    &mut SystemFilesAndEnvironment,
                );
                assert!(parsed.is_ok(), "--{option} {value}: {:?}", parsed.err());
            }
        }
    }

    fn digits(algorithm: &str) -> usize {
        match algorithm {
            "sha1:" => 40,
            "sha256:" => 64,
            "sha384:" => 96,
            _ => 128,
        }
    }

    #[test]
    fn completed_help_subjects_include_every_category() {
        let categories: Vec<&str> = HelpCategory::ALL.iter().map(|category| category.name()).collect();
        assert_eq!(SUBJECTS[2..], categories);
    }
}
