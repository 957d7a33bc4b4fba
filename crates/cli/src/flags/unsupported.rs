//! The options of curl that haul does not support, with the reasons. Their error message gives the
//! reason, unlike that for an unknown option.
//!
//! The table is used only when an option is refused and for `docs/curl-compat.md`, so that its
//! speed does not matter. It is therefore plain text.
//!
//! ```
//! use haul_cli::flags::unsupported;
//!
//! assert!(unsupported::refusal_reason(b"ntlm").unwrap().contains("password"));
//! assert!(unsupported::refusal_reason(b"location").is_none());
//! assert_eq!(unsupported::option_of_letter(b'Q'), Some("quote"));
//! assert_eq!(unsupported::letter_of("quote"), Some('Q'));
//! ```

/// The reasons for refusing options of curl. Each reason is followed by the long names, without
/// `no-`, of the options that are refused for it.
const REFUSAL_REASONS: &[(&str, &str)] = &[
    (
        "it belongs to FTP, and haul speaks only HTTP",
        "eprt epsv ftp-account ftp-alternative-to-user ftp-method ftp-pret ftp-ssl ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control ftp-ssl-reqd krb krb4 \
         list-only quote",
    ),
    (
        "it belongs to mail, and haul speaks only HTTP",
        "login-options mail-auth mail-from mail-rcpt mail-rcpt-allowfails sasl-authzid sasl-ir upload-flags",
    ),
    ("it belongs to SSH, and haul speaks only HTTP", "compressed-ssh hostpubmd5 hostpubsha256 knownhosts pubkey"),
    ("it belongs to TELNET, and haul speaks only HTTP", "telnet-option"),
    ("it belongs to TFTP, and haul speaks only HTTP", "tftp-blksize tftp-no-options"),
    ("it belongs to IPFS, and haul speaks only HTTP", "ipfs-gateway"),
    ("NTLM is broken: the password can be recovered from what it sends; use --digest", "ntlm ntlm-wb proxy-ntlm"),
    ("no proxy is spoken to by HTTP/3", "proxy-http3"),
    ("haul does not use libcurl, so there is no such code to write", "libcurl"),
    ("stapled OCSP responses of DNS servers are not checked", "doh-cert-status"),
    (
        "rustls does not support TLS passwords (SRP)",
        "tlsauthtype tlspassword tlsuser proxy-tlsauthtype proxy-tlspassword proxy-tlsuser",
    ),
    ("rustls does not support engines", "engine"),
    ("not implemented yet", "ssl-sessions"),
    ("early data can be replayed by anyone", "tls-earlydata"),
    ("no certificates are built in", "dump-ca-embed"),
    ("Metalink was removed from curl, too", "metalink"),
];

/// The refused options that are switches. Their `--no-` forms are accepted, because they turn off
/// behaviour that haul does not have.
const SWITCH_NAMES: &str = "compressed-ssh doh-cert-status eprt epsv ftp-pret ftp-ssl ftp-ssl-ccc ftp-ssl-control \
                        ftp-ssl-reqd list-only mail-rcpt-allowfails metalink ntlm ntlm-wb proxy-http3 \
                        proxy-ntlm sasl-ir tftp-no-options tls-earlydata";

/// The letters of curl's options that haul refuses, with their long names.
const OPTIONS_BY_LETTER: &[(u8, &str)] = &[(b'Q', "quote"), (b'l', "list-only"), (b't', "telnet-option")];

/// Returns the reasons for refusing options. Each reason is followed by the long names of the
/// refused options, separated by blanks.
pub fn refusal_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    REFUSAL_REASONS.iter().copied()
}

/// Returns the reason why haul refuses the option with this long name. Returns `None` if haul
/// supports it, or if curl has no such option.
pub fn refusal_reason(name: &[u8]) -> Option<&'static str> {
    let has = |names: &str| names.split_ascii_whitespace().any(|known| known.as_bytes() == name);
    REFUSAL_REASONS.iter().find(|(_, names)| has(names)).map(|&(why, _)| why)
}

/// Returns true if haul refuses the option with this long name, but accepts its form with `--no-`.
pub fn is_switch(name: &[u8]) -> bool {
    SWITCH_NAMES.split_ascii_whitespace().any(|known| known.as_bytes() == name) && refusal_reason(name).is_some()
}

/// Returns the long name of every refused option, with the reason.
pub fn all_options() -> impl Iterator<Item = (&'static str, &'static str)> {
    REFUSAL_REASONS.iter().flat_map(|&(why, names)| names.split_ascii_whitespace().map(move |name| (name, why)))
}

/// Returns true if haul refuses the option with this long name.
pub fn has_name(name: &[u8]) -> bool {
    refusal_reason(name).is_some()
}

/// Returns the letter of the refused option with this long name. `None` if the option has no
/// letter.
pub fn letter_of(name: &str) -> Option<char> {
    OPTIONS_BY_LETTER.iter().find(|(_, known)| *known == name).map(|&(letter, _)| char::from(letter))
}

/// Returns the long name of the refused option with this letter. `None` if no refused option has
/// this letter.
pub fn option_of_letter(letter: u8) -> Option<&'static str> {
    OPTIONS_BY_LETTER.iter().find(|(known, _)| *known == letter).map(|&(_, name)| name)
}
