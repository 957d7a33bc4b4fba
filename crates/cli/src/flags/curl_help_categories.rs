//! The categories of curl's help, and the options that it lists in their `--no-` form. Scripts
//! search curl's help for an option before they use it (`curl --help curl | grep -e --parallel`).
//!
//! ```
//! use haul_cli::flags::curl_help_categories;
//!
//! assert!(curl_help_categories::is_in_category("timeout", "max-time"));
//! assert!(!curl_help_categories::is_in_category("dns", "max-time"));
//! assert_eq!(curl_help_categories::negated_description("progress-meter"), Some("Show no progress"));
//! ```

/// The categories of curl's help. Each has a name, a title, and the long names of its options that
/// haul supports.
const CATEGORIES: &[(&str, &str, &str)] = &[
    (
        "auth",
        "Authentication",
        "anyauth aws-sigv4 basic delegation digest httpsig-algo httpsig-headers httpsig-key httpsig-keyid location location-trusted negotiate netrc netrc-file netrc-optional oauth2-bearer pass proxy-anyauth \
         proxy-basic proxy-negotiate proxy-pass proxy-tlsv1 proxy-user service-name socks5-basic socks5-gssapi socks5-gssapi-nec socks5-gssapi-service user",
    ),
    (
        "connection",
        "Where connections lead",
        "abstract-unix-socket connect-timeout connect-to continue-at happy-eyeballs-timeout-ms interface ip-tos ipv4 ipv6 keepalive \
         keepalive-cnt keepalive-time limit-rate local-port max-filesize max-time mptcp parallel parallel-immediate parallel-max parallel-max-host \
         proto proto-default proto-redir rate request resolve speed-limit speed-time tcp-fastopen tcp-nodelay unix-socket vlan-priority",
    ),
    (
        "curl",
        "The program itself",
        "config disable disallow-username-in-url fail-early globoff help manual next parallel parallel-immediate parallel-max \
         parallel-max-host path-as-is proto proto-default proto-redir retry retry-all-errors retry-connrefused retry-delay retry-max-time \
         show-error skip-existing url variable version",
    ),
    ("deprecated", "Without an effect", "egd-file false-start npn random-file sslv2 sslv3"),
    (
        "dns",
        "Names and addresses",
        "connect-to dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-insecure doh-url ipv4 ipv6 resolve",
    ),
    ("file", "Local files", "create-file-mode head range"),
    (
        "global",
        "What holds for all transfers",
        "fail-early parallel parallel-immediate parallel-max parallel-max-host progress-bar rate show-error stderr styled-output trace \
         trace-ascii trace-config trace-ids trace-time verbose",
    ),
    (
        "http",
        "HTTP requests and replies",
        "abstract-unix-socket alpn alt-svc anyauth aws-sigv4 basic compressed cookie cookie-jar data data-ascii data-binary data-raw data-urlencode \
         digest dump-header etag-compare etag-save expect100-timeout fail fail-with-body follow form form-escape form-string get \
         haproxy-clientip haproxy-protocol head header hsts http0.9 http1.0 http1.1 http2 http2-prior-knowledge ignore-content-length json \
         junk-session-cookies location location-trusted max-filesize max-redirs oauth2-bearer post301 post302 post303 proxy-header \
         proxy-http2 range raw referer remote-header-name request-target show-headers time-cond tr-encoding unix-socket url-query user-agent",
    ),
    (
        "output",
        "Where bodies go",
        "clobber create-dirs fail-with-body no-buffer out-null output output-dir remote-header-name remote-name remote-name-all remote-time \
         remove-on-error show-headers skip-existing use-ascii xattr",
    ),
    (
        "post",
        "Requests with a body",
        "data data-ascii data-binary data-raw data-urlencode form form-escape form-string json post301 post302 post303 url-query",
    ),
    (
        "proxy",
        "Proxies",
        "anyauth digest haproxy-clientip haproxy-protocol noproxy preproxy proxy proxy-anyauth proxy-basic proxy-cacert proxy-capath \
         proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-digest proxy-header proxy-http2 proxy-insecure proxy-key proxy-key-type \
         proxy-negotiate proxy-pass proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsv1 \
         proxy-user proxy1.0 proxytunnel socks4 socks4a socks5 socks5-basic socks5-gssapi-nec socks5-gssapi-service socks5-hostname \
         suppress-connect-headers",
    ),
    (
        "timeout",
        "Limits of time",
        "connect-timeout expect100-timeout happy-eyeballs-timeout-ms keepalive-time max-time retry-delay retry-max-time speed-time",
    ),
    (
        "tls",
        "TLS",
        "alpn ca-native cacert capath cert cert-status cert-type ciphers crlfile curves ech insecure key key-type pass pinnedpubkey proxy-ca-native \
         proxy-cacert proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-digest proxy-insecure proxy-key \
         proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tls13-ciphers \
         proxy-tlsv1 sessionid sigalgs ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort tls-max tls13-ciphers \
         tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3",
    ),
    (
        "upload",
        "Content that is sent",
        "create-file-mode data data-ascii data-binary data-raw data-urlencode form form-escape form-string json upload-file url-query",
    ),
    (
        "verbose",
        "Reports about transfers",
        "progress-bar progress-meter show-headers silent stderr styled-output trace trace-ascii trace-config trace-ids trace-time verbose \
         write-out",
    ),
];

/// The options that are on by default, each with its help text. curl's help lists their `--no-`
/// form.
const NEGATED_DESCRIPTIONS: &[(&str, &str)] = &[
    ("alpn", "Agree on no HTTP version in TLS"),
    ("clobber", "Do not replace files that exist"),
    ("keepalive", "Do not probe idle connections"),
    ("npn", "Nothing"),
    ("progress-meter", "Show no progress"),
    ("sessionid", "Do not resume TLS sessions"),
];

/// Returns the name and the title of each category, sorted by name.
pub fn categories() -> impl Iterator<Item = (&'static str, &'static str)> {
    CATEGORIES.iter().map(|&(name, about, _)| (name, about))
}

/// Returns true if the category lists the option with this long name.
pub fn is_in_category(category: &str, long: &str) -> bool {
    let names = CATEGORIES.iter().find(|(name, ..)| *name == category).map(|&(.., names)| names);
    names.is_some_and(|names| names.split_ascii_whitespace().any(|name| name == long))
}

/// Returns the help text for the `--no-` form of an option, or `None` if curl's help does not list
/// that form. `long` is the name without `no-`.
pub fn negated_description(long: &str) -> Option<&'static str> {
    NEGATED_DESCRIPTIONS.iter().find(|(name, _)| *name == long).map(|&(_, help)| help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{FlagSyntax, find_long};

    #[test]
    fn curl_help_categories_list_only_existing_flags() {
        for (category, _, names) in CATEGORIES {
            for name in names.split_ascii_whitespace() {
                assert!(find_long(name.as_bytes()).is_some(), "{name} of {category}");
            }
        }
        for (name, _) in NEGATED_DESCRIPTIONS {
            assert_eq!(find_long(name.as_bytes()).map(|flag| flag.spec().syntax), Some(FlagSyntax::Switch), "{name}");
        }
    }
}
