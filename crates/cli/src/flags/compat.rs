//! curl's options beside haul's: `docs/curl-compat.md`, made from the table of flags.
//!
//! ```
//! use haul_cli::flags::compat;
//!
//! assert!(compat::page().contains("| `--cacert` | works |"));
//! ```

use super::{FLAGS, find_long, unsupported};

/// Options of haul that curl has not.
const OWN: &[&str] = &[
    "agent",
    "agent-idle",
    "agent-status",
    "agent-stop",
    "checksum",
    "extract",
    "fsync",
    "input-file",
    "max-memory",
    "pipeline",
    "sort",
    "split",
    "stats",
    "then",
    "threads",
    "unique",
    "unordered",
];

/// What has no effect, and why.
const INERT: &[(&str, &str)] = &[
    ("append", "about FTP"),
    ("crlf", "about FTP and SMTP; what is sent by HTTP goes as it is"),
    ("delegation", "about Negotiate"),
    ("disable-eprt", "about FTP"),
    ("disable-epsv", "about FTP"),
    ("egd-file", "by curl too"),
    ("false-start", "by curl too"),
    ("ftp-create-dirs", "about FTP"),
    ("ftp-pasv", "about FTP"),
    ("ftp-port", "about FTP"),
    ("ftp-skip-pasv-ip", "about FTP"),
    ("npn", "by curl too"),
    ("parallel-immediate", "haul always does so for HTTP/1"),
    ("proxy-service-name", "about Negotiate"),
    ("proxy-ssl-allow-beast", "about TLS 1.0"),
    ("proxy-ssl-auto-client-cert", "about Windows"),
    ("proxy-tlsv1", "1.2 or newer is spoken in any case"),
    ("random-file", "by curl too"),
    ("service-name", "about Negotiate"),
    ("socks5-basic", "always on"),
    ("socks5-gssapi-nec", "about GSS-API"),
    ("socks5-gssapi-service", "about GSS-API"),
    ("ssl", "about FTP and mail"),
    ("ssl-allow-beast", "about TLS 1.0"),
    ("ssl-auto-client-cert", "about Windows"),
    ("ssl-no-revoke", "about Windows"),
    ("ssl-reqd", "about FTP and mail"),
    ("ssl-revoke-best-effort", "about Windows"),
    ("sslv2", "by curl too"),
    ("sslv3", "by curl too"),
    ("styled-output", "heads are printed as they came"),
    ("tcp-fastopen", "a hint"),
    ("tcp-nodelay", "always on"),
    ("use-ascii", "about FTP; what is sent by HTTP goes as it is"),
];

/// What works otherwise than in curl, in the persona of curl, and how.
const DIFFERS: &[(&str, &str)] = &[
    ("alt-svc", "one that cannot be reached is passed over, and the origin asked; none is used with -k"),
    ("anyauth", "before -T - a request without content finds out what is asked for"),
    (
        "aws-sigv4",
        "content that is not in memory is refused where it has to be signed, which curl signs as if there were none; works with \
         --path-as-is; to S3 a path is sent in the encoding that S3 signs, where it refuses a `+` or `=` of curl's",
    ),
    (
        "cert",
        "a server that asks for one after the handshake gets none: rustls neither renegotiates nor authenticates then",
    ),
    ("cert-type", "PEM and DER, whichever the file is"),
    ("ciphers", "the suites that rustls has"),
    ("compressed", "not asked for with -C, which counts bytes of the content as it is"),
    (
        "continue-at",
        "416 is no success where its Content-Range says another size; a further try asks by If-Range where it can, and adds nothing of changed content (36); not with -T -, which has no length",
    ),
    ("cookie", "lines of Set-Cookie in a file that name no Domain are of the first URL's host alone"),
    ("form", "no encoders"),
    ("get", "what -d gives goes into the query beside -F and -T, too, which curl refuses"),
    (
        "header",
        "one blank stands behind the colon, whatever was written; a name that is no token (RFC 9110 section 5.1) and a Content-Length \
         that is not the content's are refused",
    ),
    ("hsts", "nothing is learned with -k"),
    ("key-type", "PEM and DER, whichever the file is"),
    (
        "location",
        "305 and 304 lead nowhere; credentials stay with scheme, host and port; a `Content-Type` of `-H` goes where its content goes, and the \
         content of PUT, PATCH and DELETE goes along on 301 and 302",
    ),
    ("parallel", "uploads go one after the other"),
    ("pass", "keys of PKCS#8; of PEM's older encryption none"),
    ("proxy-cert-type", "PEM and DER, whichever the file is"),
    ("proxy-key-type", "PEM and DER, whichever the file is"),
    ("proxy-pass", "keys of PKCS#8; of PEM's older encryption none"),
    (
        "remote-header-name",
        "a leading dot, a colon and what could deceive in the name become `_`, and `filename*` goes before `filename`",
    ),
    ("retry", "a body that broke off and has gone out in part to a pipe is not sent there again"),
    ("time-cond", "2015-10-21 is a date, too: curl 8.22 does not know it, and asks without a condition"),
    ("tlsv1", "1.2 or newer"),
    ("tlsv1.0", "1.2 or newer"),
    ("tlsv1.1", "1.2 or newer"),
    ("trace", "secrets are left out"),
    ("trace-ascii", "secrets are left out"),
    ("trace-config", "components of curl show nothing more"),
    ("url-query", "goes along with what -G takes from -d; curl leaves it out then"),
    ("verbose", "secrets are left out"),
    (
        "write-out",
        "certs has names, serial number, dates and the certificate itself, but neither extensions nor keys in words; URLs are told of without their password, and that fetched last without its \
         user; time_queue is 0; %time{} has the words of the C locale",
    ),
];

/// How an option of curl fares here.
fn fares(name: &str) -> String {
    if let Some(why) = unsupported::why(name.as_bytes()) {
        return format!("refused: {why}");
    }
    if let Some((_, why)) = INERT.iter().find(|(known, _)| *known == name) {
        return format!("no effect: {why}");
    }
    match DIFFERS.iter().find(|(known, _)| *known == name) {
        Some((_, how)) => format!("differs: {how}"),
        None => "works".to_owned(),
    }
}

/// Whether curl has an option of this long name.
pub fn is_curls(name: &str) -> bool {
    !OWN.contains(&name)
}

/// The page.
pub fn page() -> String {
    let mut names: Vec<&str> = FLAGS.iter().map(|flag| flag.spec().long).filter(|name| is_curls(name)).collect();
    names.extend(unsupported::all().map(|(name, _)| name));
    names.sort_unstable();
    let mut text = String::from(
        "# curl's options\n\nEvery option of curl's manual, and how it fares as `haul curl` (or by a link of the name \
         `curl`). What is refused\nends with exit code 2 and a line that says why; nothing is passed over in silence. \
         Made from the table of flags;\na test holds it to that.\n\n| option | |\n|---|---|\n",
    );
    for name in names {
        let own = find_long(name.as_bytes()).and_then(|flag| flag.spec().short);
        let letter = own.or_else(|| unsupported::letter_of(name));
        let letter = letter.map(|letter| format!("`-{letter}` ")).unwrap_or_default();
        text.push_str(&format!("| {letter}`--{name}` | {} |\n", fares(name)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_flags_that_there_are() {
        for name in OWN.iter().chain(INERT.iter().chain(DIFFERS).map(|(name, _)| name)) {
            assert!(find_long(name.as_bytes()).is_some(), "{name}");
        }
    }

    #[test]
    fn the_page_is_what_the_table_says() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/curl-compat.md");
        crate::generated::assert_is(&path, &page());
    }

    /// What the curl that is installed lists: its options change with its version, so each of them has to be on the page.
    #[test]
    fn every_option_of_the_curl_that_is_installed_is_on_the_page() {
        let Ok(output) = std::process::Command::new("curl").args(["--help", "all"]).output() else { return };
        let page = page();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut count = 0;
        for name in text.split_ascii_whitespace().filter_map(|word| word.strip_prefix("--")) {
            let name = name.trim_end_matches([',', '.', ')']);
            let positive = name.strip_prefix("no-").unwrap_or(name);
            let is_there = [name, positive].iter().any(|name| page.contains(&format!("`--{name}` |")));
            assert!(is_there, "{name}");
            count += 1;
        }
        assert!(count == 0 || count > 200, "{count} options, which is no list of curl's");
    }
}
