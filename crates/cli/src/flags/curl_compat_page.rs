//! Generates `docs/curl-compat.md`, which lists all options of curl and says whether they work in
//! haul.
//!
//! ```
//! use haul_cli::flags::curl_compat_page;
//!
//! assert!(curl_compat_page::page().contains("| `--cacert` | works |"));
//! ```

use super::{FLAGS, find_long, unsupported};

/// The options of haul that curl does not have.
const HAUL_OPTIONS: &[&str] = &[
    "agent",
    "agent-idle",
    "agent-status",
    "agent-stop",
    "allow-body-files",
    "checksum",
    "csv",
    "csv-in",
    "depth",
    "events",
    "extract",
    "extract-bytes",
    "fsync",
    "input-file",
    "job",
    "jsonl",
    "jsonl-in",
    "keepalive-intvl",
    "limit-rate-total",
    "max-memory",
    "mirror-paths",
    "paginate",
    "paginate-any",
    "paginate-json",
    "paginate-max",
    "paginate-query",
    "pipeline",
    "rate-host",
    "refresh",
    "select",
    "select-json",
    "shard",
    "sort",
    "split",
    "stall-time",
    "stats",
    "summary",
    "then",
    "threads",
    "tsv-in",
    "unique",
    "unordered",
    "warc",
    "warc-max-size",
    "warc-secrets",
    "with-url",
];

/// The options that haul accepts without an effect, each with the reason that `docs/curl-compat.md`
/// gives.
const IGNORED_OPTIONS: &[(&str, &str)] = &[
    ("append", "concerns FTP only"),
    ("crlf", "meant for FTP and SMTP; content is sent unchanged, where curl 8.22 makes CRLF of LF over HTTP, too"),
    ("disable-eprt", "concerns FTP only"),
    ("disable-epsv", "concerns FTP only"),
    ("egd-file", "in curl neither"),
    ("false-start", "in curl neither"),
    ("ftp-create-dirs", "concerns FTP only"),
    ("ftp-pasv", "concerns FTP only"),
    ("ftp-port", "concerns FTP only"),
    ("ftp-skip-pasv-ip", "concerns FTP only"),
    ("npn", "in curl neither"),
    ("proxy-ssl-allow-beast", "concerns TLS 1.0 only"),
    ("proxy-ssl-auto-client-cert", "concerns Windows only"),
    ("proxy-tlsv1", "TLS 1.2 or newer is always used"),
    ("random-file", "in curl neither"),
    ("socks5-basic", "always on"),
    ("ssl", "concerns FTP and mail only"),
    ("ssl-allow-beast", "concerns TLS 1.0 only"),
    ("ssl-auto-client-cert", "concerns Windows only"),
    ("ssl-no-revoke", "concerns Windows only"),
    ("ssl-reqd", "concerns FTP and mail only"),
    ("ssl-revoke-best-effort", "concerns Windows only"),
    ("sslv2", "in curl neither"),
    ("sslv3", "in curl neither"),
    ("styled-output", "header fields are printed as they arrived"),
    ("tcp-nodelay", "always on"),
    (
        "use-ascii",
        "meant for FTP; content is delivered and sent unchanged, where curl 8.22 makes CRLF of LF in what it sends",
    ),
];

/// The options that have another effect in haul than in curl, even if haul acts as curl. The second
/// text of each pair describes the difference.
const DIFFERENCES: &[(&str, &str)] = &[
    ("alt-svc", "if the alternative cannot be reached, the origin is asked; not used with -k"),
    (
        "anyauth",
        "with -T - and credentials a request without a body is sent first, to learn which scheme the server wants",
    ),
    (
        "aws-sigv4",
        "a body that is not in memory but has to be signed is refused, where curl signs as if it were empty; works with \
         --path-as-is; for S3 the path is sent in the encoding that S3 signs, so that `+` and `=` work, which S3 refuses from curl",
    ),
    ("cert", "only during the handshake: rustls supports neither renegotiation nor post-handshake authentication"),
    ("cert-type", "PEM, DER and P12, recognised from the file"),
    ("ciphers", "only the cipher suites that rustls has"),
    ("compressed", "not sent with -C, which counts bytes of the unencoded content"),
    (
        "continue-at",
        "416 is a failure if its Content-Range gives another size; a retry uses If-Range where it can and appends nothing of changed content (36); not with -T -, which has no length",
    ),
    ("cookie", "Set-Cookie lines in a file that have no Domain apply to the host of the first URL only"),
    ("create-file-mode", "also of files that are downloaded; in curl of those alone that it creates on servers"),
    ("form", "what is encoded as quoted-printable is sent with its length, where curl sends chunks"),
    ("get", "bytes that no URL holds are percent-encoded; curl refuses blanks (3) and sends the others as they are"),
    (
        "header",
        "one space follows the colon, whatever was written; a wrong Content-Length, and a name with other bytes than those of a \
         token that spells a framing field, are refused",
    ),
    ("hsts", "nothing is remembered with -k"),
    ("key-type", "only PEM and DER, recognised from the file"),
    (
        "http2",
        "with http:// there is no `Upgrade: h2c`, which RFC 9113 section 3.1 has removed; --http2-prior-knowledge speaks HTTP/2 there",
    ),
    (
        "location",
        "304 and 305 are not followed; credentials stay with scheme, host and port; a `Content-Type` of `-H` is sent only with the \
         body, and PUT, PATCH and DELETE keep their body after 301 and 302",
    ),
    (
        "pinnedpubkey",
        "a value without a usable key matches no server and is ignored with http://, as by curl; under haul's own name it is an error",
    ),
    ("proxy-cert-type", "PEM, DER and P12, recognised from the file"),
    ("proxy-key-type", "only PEM and DER, recognised from the file"),
    (
        "remote-header-name",
        "a leading dot, a colon and misleading characters become `_`; `filename*` takes precedence over `filename`",
    ),
    ("retry", "a body that broke off after part of it went to a pipe is not written there again"),
    ("time-cond", "2015-10-21 is a date, too; curl 8.22 does not know this form and sends no condition"),
    ("tlsv1", "means TLS 1.2 or newer"),
    ("tlsv1.0", "means TLS 1.2 or newer"),
    ("tlsv1.1", "means TLS 1.2 or newer"),
    ("trace", "secrets are left out"),
    ("trace-ascii", "secrets are left out"),
    ("trace-config", "the names of curl's components have no effect"),
    ("trace-ids", "the numbers are always [0-0]"),
    ("trace-time", "the time is UTC"),
    ("url-query", "may be combined with -G, where curl ignores it"),
    ("verbose", "secrets are left out; -vv and more v add no lines about the inside of libcurl"),
    (
        "write-out",
        "certs has names, serial number, dates and the certificate itself, but neither extensions nor keys as text; URLs are shown without \
         their password, and the one fetched last without its user; time_queue is 0; %time{} uses the C locale",
    ),
];

/// Returns the text about an option of curl in `docs/curl-compat.md`. It begins with `refused`, `no
/// effect`, `differs` or `works`.
fn status_of_option(name: &str) -> String {
    if let Some(why) = unsupported::refusal_reason(name.as_bytes()) {
        return format!("refused: {why}");
    }
    if let Some((_, why)) = IGNORED_OPTIONS.iter().find(|(known, _)| *known == name) {
        return format!("no effect: {why}");
    }
    match DIFFERENCES.iter().find(|(known, _)| *known == name) {
        Some((_, how)) => format!("differs: {how}"),
        None => "works".to_owned(),
    }
}

/// Returns true if curl has a long option of this name.
pub fn is_curl_option(name: &str) -> bool {
    !HAUL_OPTIONS.contains(&name)
}

/// Returns the text of the page `docs/curl-compat.md`, which lists curl's options and how haul
/// supports them.
pub fn page() -> String {
    let mut names: Vec<&str> = FLAGS.iter().map(|flag| flag.spec().long).filter(|name| is_curl_option(name)).collect();
    names.extend(unsupported::all_options().map(|(name, _)| name));
    names.sort_unstable();
    let mut text = String::from(
        "# curl's options\n\nEvery option in curl's manual, and what it does with `haul curl` (or through a link named `curl`). A \
         refused option ends\nthe run with exit code 2 and a line that says why; no option is ignored silently. This page is \
         generated from the table of\nflags, and a test keeps the two in step.\n\n| option | |\n|---|---|\n",
    );
    for name in names {
        let own = find_long(name.as_bytes()).and_then(|flag| flag.spec().short);
        let letter = own.or_else(|| unsupported::letter_of(name));
        let letter = letter.map(|letter| format!("`-{letter}` ")).unwrap_or_default();
        text.push_str(&format!("| {letter}`--{name}` | {} |\n", status_of_option(name)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compat_page_lists_only_existing_flags() {
        for name in HAUL_OPTIONS.iter().chain(IGNORED_OPTIONS.iter().chain(DIFFERENCES).map(|(name, _)| name)) {
            assert!(find_long(name.as_bytes()).is_some(), "{name}");
        }
    }

    #[test]
    fn compat_page_matches_the_flag_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/curl-compat.md");
        crate::generated_files::assert_is(&path, &page());
    }

    /// Runs `curl --help all`, if curl is installed. The test fails if the installed curl is newer
    /// and has options that `docs/curl-compat.md` does not list.
    #[test]
    fn compat_page_has_every_option_of_installed_curl() {
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
