//! Checks that every option has a visible effect in every mode of fetching URLs: one URL, a list, a
//! stage after `--then`, one after the other, and through the agent.
//!
//! A run with the option is compared with a run without it: the exit code, the output, the requests
//! that the server receives, and the files. An option that is parsed but not used makes no
//! difference. Options that need more than a plain HTTP server (TLS, other proxies, time) name the
//! tests that show their effect. An option without an effect must say so in its help.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::agent::TestAgentDirectory;
use common::{HAUL, program, run};
use haul_cli::flags::FLAGS;

/// A mode in which haul fetches URLs. Every option must have an effect in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchMode {
    One,
    List,
    Stage,
    Serial,
    Agent,
}

const EACH: &[FetchMode] = &[FetchMode::One, FetchMode::List, FetchMode::Stage, FetchMode::Serial, FetchMode::Agent];

/// The method by which these tests show the effect of an option.
enum OptionEffectProof {
    /// The result of fetching a URL with the path `path` changes if `options` are added to the
    /// options `beside`.
    Seen { options: &'static str, beside: &'static str, path: &'static str, modes: &'static [FetchMode] },
    /// Another test shows the effect. It is in one of `files`, and contains `text`.
    Tested { text: &'static str, files: &'static [&'static str] },
    /// The option asks for the default, and so changes nothing. Its help text must contain `words`.
    Anyway { words: &'static str },
}

const fn seen(options: &'static str) -> OptionEffectProof {
    with(options, "", "plain")
}

const fn with(options: &'static str, beside: &'static str, path: &'static str) -> OptionEffectProof {
    OptionEffectProof::Seen { options, beside, path, modes: EACH }
}

const fn only(
    modes: &'static [FetchMode],
    options: &'static str,
    beside: &'static str,
    path: &'static str,
) -> OptionEffectProof {
    OptionEffectProof::Seen { options, beside, path, modes }
}

const fn tested(text: &'static str, files: &'static [&'static str]) -> OptionEffectProof {
    OptionEffectProof::Tested { text, files }
}

const fn anyway(words: &'static str) -> OptionEffectProof {
    OptionEffectProof::Anyway { words }
}

/// The options, and for each the method by which its effect is shown. Each run begins in a
/// directory with the files `x`, `y`, `there` (4 bytes), `tag`, `jar`, `netrc`, `.netrc` and
/// `conf`, and the directory `sub`. In options, `ADDRESS` stands for the server's address and port,
/// and `SERVER` for its URL. The prefix of a path selects the URL: `tls:` an https URL, `local:`
/// the host `localhost`, and `bare:` a URL without a scheme.
const EFFECTS: &[(&str, OptionEffectProof)] = &[
    ("abstract-unix-socket", seen("--abstract-unix-socket nonesuch --retry 0")),
    ("agent", tested("status(\"calls\")", &["background_agent.rs"])),
    ("agent-idle", tested("--agent-idle", &["background_agent.rs"])),
    ("agent-status", tested("--agent-status", &["background_agent.rs"])),
    ("agent-stop", tested("--agent-stop", &["../common/agent.rs"])),
    ("allow-body-files", tested("--allow-body-files", &["jsonl_input.rs"])),
    ("alpn", with("--no-alpn", "--retry 0", "tls:plain")),
    ("alt-svc", tested("--alt-svc", &["state_files.rs"])),
    ("anyauth", with("--anyauth", "-u me:word", "plain")),
    ("aws-sigv4", with("--aws-sigv4 aws:amz:r:s", "-u me:word", "plain")),
    ("basic", with("--basic", "-u me:word --digest", "401")),
    ("ca-native", anyway("which is the default")),
    ("cacert", with("--cacert nonesuch", "--retry 0", "tls:plain")),
    ("capath", with("--capath nonesuch", "--retry 0", "tls:plain")),
    ("cert", with("--cert nonesuch", "--retry 0", "tls:plain")),
    ("cert-status", tested("--cert-status", &["certificate_status.rs"])),
    ("cert-type", tested("--cert-type", &["client_certificates.rs"])),
    ("checksum", tested("--checksum", &["split_and_resumed_downloads.rs"])),
    ("ciphers", with("--ciphers ECDHE-RSA-AES128-GCM-SHA256", "--retry 0", "tls:plain")),
    ("clobber", with("--no-clobber", "--remote-name-all", "plain")),
    ("compressed", seen("--compressed")),
    ("config", seen("-K conf")),
    ("connect-timeout", tested("--connect-timeout", &["curl_compat_options.rs"])),
    ("connect-to", seen("--connect-to ::127.0.0.1:1 --retry 0")),
    ("continue-at", seen("-C 2")),
    ("cookie", seen("-b a=b")),
    ("cookie-jar", seen("-c newjar")),
    ("create-dirs", with("--create-dirs", "--remote-name-all --output-dir new", "plain")),
    ("create-file-mode", with("--create-file-mode 0600", "--remote-name-all --output-dir sub", "plain")),
    ("crlfile", with("--crlfile nonesuch", "--retry 0", "tls:plain")),
    ("csv", with("--csv", "--extract [a-z]", "plain")),
    ("csv-in", tested("--csv-in", &["table_input.rs"])),
    ("curves", with("--curves X25519", "--retry 0", "tls:plain")),
    ("data", seen("--data a=b")),
    ("data-ascii", seen("--data-ascii a=b")),
    ("data-binary", seen("--data-binary @there")),
    ("data-raw", seen("--data-raw @there")),
    ("data-urlencode", seen("--data-urlencode a=&")),
    ("delegation", tested("--delegation", &["negotiate_without_kerberos.rs"])),
    ("depth", tested("\"--depth\"", &["selection.rs"])),
    ("digest", with("--digest", "-u me:word", "plain")),
    ("disable", tested("--disable", &["package_manager_commands.rs"])),
    ("disallow-username-in-url", tested("--disallow-username-in-url", &["same_options_for_one_and_two_urls.rs"])),
    ("dns-interface", tested("--dns-interface", &["dns.rs"])),
    ("dns-ipv4-addr", tested("--dns-ipv4-addr", &["dns.rs"])),
    ("dns-ipv6-addr", tested("--dns-ipv6-addr", &["dns.rs"])),
    ("dns-servers", tested("--dns-servers", &["dns.rs"])),
    ("doh-insecure", tested("--doh-insecure", &["dns.rs"])),
    ("doh-url", tested("--doh-url", &["dns.rs"])),
    ("dump-header", seen("--dump-header heads")),
    ("ech", tested("--ech", &["encrypted_client_hello.rs"])),
    ("etag-compare", seen("--etag-compare tag")),
    ("etag-save", seen("--etag-save newtag")),
    ("events", tested("--events", &["events.rs"])),
    ("expect100-timeout", tested("--expect100-timeout", &["failures.rs"])),
    ("extract", seen("--extract l+")),
    ("extract-bytes", with("--extract-bytes", "--extract caf.", "latin")),
    ("fail", with("--no-fail", "", "gone")),
    ("fail-early", only(&[FetchMode::Serial], "--fail-early", "", "gone")),
    ("fail-with-body", with("--fail-with-body", "", "gone")),
    ("follow", with("--follow", "-X PUT", "303")),
    ("form", seen("--form a=b")),
    ("form-escape", with("--form-escape", "--form a\"b=c", "plain")),
    ("form-string", seen("--form-string a=@there")),
    ("fsync", tested("--fsync", &["system_faults.rs"])),
    ("get", with("--get", "-d a=b", "plain")),
    ("globoff", tested("--globoff", &["package_manager_commands.rs"])),
    (
        "happy-eyeballs-timeout-ms",
        tested("--happy-eyeballs-timeout-ms", &["../../src/build_plan/tests/credentials.rs"]),
    ),
    ("haproxy-clientip", seen("--haproxy-clientip 10.0.0.1")),
    ("haproxy-protocol", seen("--haproxy-protocol")),
    ("head", seen("--head")),
    ("header", seen("--header X:y")),
    ("help", tested("--help", &["curl_compat_options.rs"])),
    ("hsts", tested("--hsts", &["state_files.rs"])),
    ("http0.9", tested("--http0.9", &["differential/cases/errors.txt"])),
    ("http1.0", seen("--http1.0")),
    ("http1.1", with("--http1.1", "--retry 0", "tls:plain")),
    ("http2", with("--http2", "--http1.1 --retry 0", "tls:plain")),
    ("http2-prior-knowledge", seen("--http2-prior-knowledge --retry 0")),
    ("http3", tested("--http3", &["http3.rs"])),
    ("http3-only", tested("--http3-only", &["http3.rs"])),
    ("httpsig-algo", tested("--httpsig-algo", &["message_signatures.rs"])),
    ("httpsig-headers", tested("--httpsig-headers", &["message_signatures.rs"])),
    ("httpsig-key", tested("--httpsig-key", &["message_signatures.rs"])),
    ("httpsig-keyid", tested("--httpsig-keyid", &["message_signatures.rs"])),
    ("ignore-content-length", with("--ignore-content-length", "--retry 0", "long")),
    ("include", seen("--include")),
    ("input-file", tested("--input-file", &["failures.rs"])),
    ("insecure", tested("--insecure", &["package_manager_commands.rs"])),
    ("interface", seen("--interface nonesuch --retry 0")),
    ("ip-tos", tested("--ip-tos", &["../../src/build_plan/tests/credentials.rs"])),
    ("ipv4", tested("--ipv4", &["differential/cases/methods.txt"])),
    ("ipv6", with("--ipv6", "--retry 0", "local:plain")),
    ("job", tested("killed_job_repeats_only_requests_in_flight", &["jobs.rs"])),
    ("json", seen("--json {}x")),
    ("jsonl", seen("--jsonl")),
    ("jsonl-in", tested("--jsonl-in", &["jsonl_input.rs"])),
    ("junk-session-cookies", with("--junk-session-cookies", "-b jar", "plain")),
    ("keepalive", tested("keepalive", &["system_faults.rs"])),
    ("keepalive-cnt", tested("--keepalive-cnt", &["system_faults.rs"])),
    ("keepalive-intvl", tested("--keepalive-intvl", &["../../src/build_plan/tests/credentials.rs"])),
    ("keepalive-time", tested("--keepalive-time", &["../../src/build_plan/tests/credentials.rs"])),
    ("key", with("--key nonesuch", "--cert there --retry 0", "tls:plain")),
    ("key-type", tested("--key-type", &["client_certificates.rs"])),
    ("limit-rate", tested("--limit-rate", &["split_and_resumed_downloads.rs"])),
    ("limit-rate-total", tested("--limit-rate-total", &["rate_and_stall_limits.rs"])),
    ("local-port", tested("--local-port", &["connection_endpoints.rs"])),
    ("location", with("--no-location", "", "302")),
    ("location-trusted", tested("--location-trusted", &["redirects.rs"])),
    ("manual", tested("--manual", &["curl_compat_options.rs"])),
    ("max-filesize", seen("--max-filesize 3")),
    ("max-memory", tested("--max-memory", &["bodies_of_url_lists.rs"])),
    ("max-redirs", with("--max-redirs 0", "", "302")),
    ("max-time", tested("--max-time", &["system_faults.rs"])),
    ("mirror-paths", tested("--mirror-paths", &["name_templates.rs"])),
    ("mptcp", tested("--mptcp", &["connection_endpoints.rs"])),
    ("negotiate", tested("--negotiate", &["negotiate_without_kerberos.rs"])),
    ("netrc", seen("--netrc")),
    ("netrc-file", seen("--netrc-file netrc")),
    ("netrc-optional", seen("--netrc-optional")),
    ("next", tested("--next", &["failures.rs"])),
    ("no-buffer", anyway("Accepted for compatibility with curl")),
    ("noproxy", with("--noproxy *", "-x http://127.0.0.1:1 --retry 0", "plain")),
    ("oauth2-bearer", seen("--oauth2-bearer token")),
    ("out-null", seen("--out-null")),
    ("output", seen("--output new")),
    ("output-dir", with("--output-dir sub", "--remote-name-all", "plain")),
    ("paginate", tested("\"--paginate\", \"link\"", &["pagination.rs"])),
    ("paginate-any", tested("\"--paginate-any\"", &["pagination.rs"])),
    ("paginate-json", tested("\"--paginate-json\"", &["pagination.rs"])),
    ("paginate-max", tested("\"--paginate-max\"", &["pagination.rs"])),
    ("paginate-query", tested("\"--paginate-query\"", &["pagination.rs"])),
    ("parallel", tested("--no-parallel", &["same_options_for_one_and_two_urls.rs"])),
    ("parallel-immediate", tested("--parallel-immediate", &["http2_testkit_servers.rs"])),
    ("parallel-max", tested("--parallel-max", &["bodies_of_url_lists.rs"])),
    ("parallel-max-host", tested("--parallel-max-host", &["bodies_of_url_lists.rs"])),
    ("pass", tested("--pass", &["client_certificates.rs"])),
    ("path-as-is", with("--path-as-is", "", "plain/a/..")),
    ("pinnedpubkey", tested("--pinnedpubkey", &["pinning_and_revocation.rs"])),
    ("pipeline", tested("pipeline", &["../../../engine/tests/suite/fleet_pipelining.rs"])),
    ("post301", with("--post301", "-d a=b", "301")),
    ("post302", with("--post302", "-d a=b", "302")),
    ("post303", with("--post303", "-d a=b", "303")),
    ("preproxy", seen("--preproxy socks5://127.0.0.1:1 --retry 0")),
    // The bar is for a single body that this process receives.
    ("progress-bar", only(&[FetchMode::One], "--progress-bar", "", "plain")),
    ("progress-meter", tested("progress: false", &["../../src/run/report/progress/tests.rs"])),
    ("proto", seen("--proto =https")),
    ("proto-default", with("--proto-default https --retry 0", "", "bare:plain")),
    ("proto-redir", with("--proto-redir =https", "", "302")),
    ("proxy", seen("--proxy http://127.0.0.1:1 --retry 0")),
    ("proxy-anyauth", with("--proxy-anyauth", "-x SERVER -U me:word", "plain")),
    ("proxy-basic", tested("--proxy-basic", &["proxy_servers.rs"])),
    ("proxy-ca-native", anyway("Like --ca-native")),
    ("proxy-cacert", with("--proxy-cacert nonesuch", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-capath", with("--proxy-capath nonesuch", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-cert", with("--proxy-cert nonesuch", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-cert-type", anyway("finds out")),
    ("proxy-ciphers", with("--proxy-ciphers ECDHE-RSA-AES128-GCM-SHA256", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-crlfile", with("--proxy-crlfile nonesuch", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-digest", with("--proxy-digest", "-x SERVER -U me:word", "plain")),
    ("proxy-header", with("--proxy-header X:y", "-x SERVER", "plain")),
    ("proxy-http2", with("--proxy-http2", "-x https://ADDRESS --retry 0", "plain")),
    ("proxy-insecure", tested("--proxy-insecure", &["proxy_servers.rs"])),
    ("proxy-key", with("--proxy-key nonesuch", "-x https://ADDRESS --proxy-cert there --retry 0", "plain")),
    ("proxy-key-type", anyway("finds out")),
    ("proxy-negotiate", tested("--proxy-negotiate", &["negotiate_without_kerberos.rs"])),
    ("proxy-pass", tested("--pass", &["client_certificates.rs"])),
    ("proxy-pinnedpubkey", tested("--proxy-pinnedpubkey", &["curl_compat_proxies.rs"])),
    (
        "proxy-tls13-ciphers",
        with("--proxy-tls13-ciphers TLS_AES_128_GCM_SHA256", "-x https://ADDRESS --retry 0", "plain"),
    ),
    ("proxy-service-name", tested("--proxy-service-name", &["negotiate_without_kerberos.rs"])),
    ("proxy-user", with("--proxy-user me:word", "-x SERVER", "plain")),
    ("proxy1.0", seen("--proxy1.0 127.0.0.1:1 --retry 0")),
    ("proxytunnel", with("--proxytunnel --retry 0", "-x SERVER", "plain")),
    ("range", seen("--range 1-2")),
    ("rate", tested("--rate", &["same_options_for_one_and_two_urls.rs"])),
    ("rate-host", tested("--rate-host", &["rate_and_stall_limits.rs"])),
    ("raw", tested("--raw", &["heads_and_write_out.rs"])),
    ("referer", seen("--referer http://elsewhere/")),
    ("refresh", tested("refresh_fetches_only_what_has_changed", &["job_refresh.rs"])),
    ("remote-header-name", with("--remote-header-name", "--remote-name-all --output-dir sub", "plain")),
    ("remote-name", seen("--remote-name")),
    ("remote-name-all", seen("--remote-name-all")),
    ("remote-time", with("--remote-time", "--remote-name-all --output-dir sub", "plain")),
    ("remove-on-error", tested("--remove-on-error", &["output_files.rs"])),
    ("request", seen("--request PUT")),
    ("request-target", seen("--request-target /other")),
    ("resolve", tested("--resolve", &["connection_endpoints.rs"])),
    ("retry", tested("--retry", &["failures.rs"])),
    ("retry-all-errors", tested("--retry-all-errors", &["package_manager_commands.rs"])),
    ("retry-connrefused", tested("--retry-connrefused", &["verbose_and_trace.rs"])),
    ("retry-delay", tested("--retry-delay", &["retries.rs"])),
    ("retry-max-time", tested("--retry-max-time", &["differential/cases/recipes.txt"])),
    ("select", tested("\"--select\"", &["selection.rs"])),
    ("select-json", tested("\"--select-json\"", &["selection.rs"])),
    ("service-name", tested("--service-name", &["negotiate_without_kerberos.rs"])),
    ("sessionid", tested("--no-sessionid", &["differential/cases/methods.txt"])),
    ("shard", tested("--shard", &["shards.rs"])),
    ("show-error", with("--show-error", "--silent", "gone")),
    ("show-headers", seen("--show-headers")),
    ("sigalgs", tested("--sigalgs", &["certificate_verification.rs"])),
    ("silent", with("--silent", "", "gone")),
    ("skip-existing", with("--skip-existing", "--remote-name-all", "plain")),
    ("socks4", seen("--socks4 127.0.0.1:1 --retry 0")),
    ("socks4a", seen("--socks4a 127.0.0.1:1 --retry 0")),
    ("socks5", seen("--socks5 127.0.0.1:1 --retry 0")),
    ("socks5-basic", anyway("haul always does")),
    ("socks5-gssapi", tested("--socks5-gssapi", &["negotiate_without_kerberos.rs"])),
    ("socks5-gssapi-nec", tested("--socks5-gssapi-nec", &["negotiate_without_kerberos.rs"])),
    ("socks5-gssapi-service", tested("--socks5-gssapi-service", &["negotiate_without_kerberos.rs"])),
    ("socks5-hostname", seen("--socks5-hostname 127.0.0.1:1 --retry 0")),
    ("sort", with("--sort", "--extract [a-z]", "plain")),
    ("speed-limit", tested("--speed-limit", &["wall_clock.rs"])),
    ("speed-time", tested("--speed-time", &["wall_clock.rs"])),
    ("split", tested("--split", &["split_and_resumed_downloads.rs"])),
    ("stall-time", tested("--stall-time", &["rate_and_stall_limits.rs"])),
    ("stats", seen("--stats")),
    ("stderr", with("--stderr errors", "", "gone")),
    ("styled-output", anyway("Accepted for compatibility with curl")),
    ("summary", seen("--summary")),
    ("suppress-connect-headers", with("--suppress-connect-headers", "-x SERVER -p -D heads", "plain")),
    ("tcp-fastopen", tested("--tcp-fastopen", &["connection_endpoints.rs"])),
    ("then", tested("--then", &["extraction.rs"])),
    ("threads", tested("--threads", &["stats.rs"])),
    ("time-cond", seen("--time-cond 2000-01-01")),
    ("tls-max", with("--tls-max 1.2", "--retry 0", "tls:plain")),
    ("tls13-ciphers", with("--tls13-ciphers TLS_AES_128_GCM_SHA256", "--retry 0", "tls:plain")),
    ("tlsv1", anyway("Accepted for compatibility with curl")),
    ("tlsv1.0", anyway("Accepted for compatibility with curl")),
    ("tlsv1.1", anyway("Accepted for compatibility with curl")),
    ("tlsv1.2", anyway("This is the default")),
    ("tlsv1.3", with("--tlsv1.3", "--retry 0", "tls:plain")),
    ("tr-encoding", seen("--tr-encoding")),
    ("trace", seen("--trace log")),
    ("trace-ascii", seen("--trace-ascii log")),
    ("trace-config", with("--trace-config ids", "-v", "plain")),
    ("trace-ids", with("--trace-ids", "-v", "plain")),
    ("trace-time", with("--trace-time", "-v", "plain")),
    ("tsv-in", tested("--tsv-in", &["table_input.rs"])),
    ("unique", with("--unique", "--extract [a-z]", "plain")),
    ("unix-socket", seen("--unix-socket nonesuch --retry 0")),
    ("unordered", tested("--unordered", &["bodies_of_url_lists.rs"])),
    ("upload-file", seen("--upload-file there")),
    ("url", tested("--url", &["same_options_for_one_and_two_urls.rs"])),
    ("url-query", seen("--url-query a=b")),
    ("user", seen("--user me:word")),
    ("user-agent", seen("--user-agent other")),
    ("variable", tested("--variable", &["curl_compat_options.rs"])),
    ("verbose", seen("--verbose")),
    ("version", tested("--version", &["curl_scripts.rs"])),
    ("vlan-priority", tested("--vlan-priority", &["../../src/build_plan/tests/credentials.rs"])),
    ("warc", tested("\"--warc\"", &["warc.rs"])),
    ("warc-max-size", tested("--warc-max-size", &["warc.rs"])),
    ("warc-secrets", tested("--warc-secrets", &["warc.rs"])),
    ("with-url", with("--with-url", "--extract [a-z]", "plain")),
    ("write-out", seen("--write-out told")),
    ("xattr", tested("--xattr", &["same_options_for_one_and_two_urls.rs"])),
];

/// The help text of an option that haul accepts without an effect.
const NO_EFFECT: &str = "No effect, accepted for compatibility with curl";

#[test]
fn every_option_has_an_effect_or_documents_none() {
    let known: BTreeMap<&str, &OptionEffectProof> = EFFECTS.iter().map(|(name, effect)| (*name, effect)).collect();
    assert_eq!(known.len(), EFFECTS.len(), "each once");
    for flag in FLAGS {
        let spec = flag.spec();
        let has_none = spec.help.starts_with("No effect");
        assert_eq!(known.contains_key(spec.long), !has_none, "--{}: {NO_EFFECT}?", spec.long);
        assert!(!has_none || spec.help == NO_EFFECT && !spec.doc.is_empty(), "--{}", spec.long);
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    for (name, effect) in EFFECTS {
        assert!(FLAGS.iter().any(|flag| flag.spec().long == *name), "there is no --{name}");
        match effect {
            OptionEffectProof::Tested { text, files } => {
                let has_it = |file: &&str| fs::read_to_string(tests.join(file)).is_ok_and(|test| test.contains(text));
                assert!(files.iter().any(has_it), "--{name}: {text} is not in {files:?}");
            }
            OptionEffectProof::Anyway { words } => {
                let mut flags = FLAGS.iter().map(|flag| flag.spec());
                assert!(flags.any(|spec| spec.long == *name && spec.doc.contains(words)), "--{name}: {words}");
            }
            OptionEffectProof::Seen { .. } => {}
        }
    }
}

#[test]
fn options_make_a_difference_in_every_mode() {
    let only = std::env::var("HAUL_OPTION").ok();
    let agent = TestAgentDirectory::new();
    let mut unused = Vec::new();
    for (name, effect) in EFFECTS.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        let OptionEffectProof::Seen { options, beside, path, modes } = effect else { continue };
        for mode in *modes {
            let without = observe(*mode, beside, path, &agent);
            let with = observe(*mode, &format!("{beside} {options}"), path, &agent);
            if without == with {
                let shown = if only.is_some() { format!(": {without:#?}") } else { String::new() };
                unused.push(format!("--{name} for {mode:?}{shown}"));
            }
        }
    }
    assert!(unused.is_empty(), "no effect: {unused:#?}");
}

/// The results of one run of haul, which are compared with those of a run with other options.
#[derive(Debug, PartialEq, Eq)]
struct ObservedRun {
    code: i32,
    stdout: String,
    stderr: Vec<String>,
    requests: Vec<String>,
    files: BTreeMap<String, (Vec<u8>, u32, bool)>,
}

fn observe(mode: FetchMode, options: &str, path: &str, agent: &TestAgentDirectory) -> ObservedRun {
    let (server, index) = (RecordingServer::start(), common::page("<x> <y>"));
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let local = server.address.replace("127.0.0.1", "localhost");
    let (scheme, host, path) = match path.split_once(':') {
        Some(("bare", path)) => ("", &server.address, path),
        Some(("tls", path)) => ("https://", &server.address, path),
        Some(("local", path)) => ("http://", &local, path),
        _ => ("http://", &server.address, path),
    };
    let url = |name: &str| format!("{scheme}{host}/{path}/{name}");
    let options = options.replace("SERVER", "http://ADDRESS").replace("ADDRESS", &server.address);
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    let mut args = options.clone();
    match mode {
        FetchMode::One => args.push(url("x")),
        FetchMode::Agent => args.extend([agent.option(), url("x")]),
        FetchMode::Serial => args.extend(["--no-parallel".to_owned(), url("x"), url("y")]),
        FetchMode::List => {
            fs::write(dir.path().join("list"), format!("{}\n{}\n", url("x"), url("y"))).unwrap();
            args.extend(["--input-file", "list"].map(str::to_owned));
        }
        FetchMode::Stage => {
            let first = [&*index.url("/"), "--extract", "<([a-z])>", "--then", &url("{}")];
            args = first.into_iter().map(str::to_owned).chain(options).collect();
        }
    }
    let mut command = program(HAUL);
    let ran = run(command.args(&args).current_dir(dir.path()).env("HOME", dir.path()));
    let neutral = |text: &str| {
        let text = text.replace(&server.address, "HOST").replace(&index.addr().to_string(), "INDEX");
        without_numbers(&text.replace(&*dir.path().to_string_lossy(), "DIR"))
    };
    // The messages of several transfers come in any order.
    let mut stderr: Vec<String> = ran.stderr.lines().map(neutral).collect();
    stderr.sort();
    let mut requests: Vec<String> = server.requests.lock().unwrap().iter().map(|text| neutral(text)).collect();
    requests.sort();
    let _ = fs::remove_file(dir.path().join("list"));
    ObservedRun {
        code: ran.code,
        stdout: neutral(&String::from_utf8_lossy(&ran.stdout)),
        stderr,
        requests,
        files: files(dir.path()),
    }
}

/// Returns the text with `N` in place of each number of five or more digits, such as a client's
/// port, which differs in each run.
fn without_numbers(text: &str) -> String {
    let runs = text.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let neutral = runs.map(|run| if run.len() >= 5 && run[0].is_ascii_digit() { &b"N"[..] } else { run });
    String::from_utf8_lossy(&neutral.collect::<Vec<&[u8]>>().concat()).into_owned()
}

fn prepare(dir: &Path) {
    let jar = "127.0.0.1\tFALSE\t/\tFALSE\t0\told\t1\n";
    let netrc = "machine 127.0.0.1 login me password word\n";
    for (name, content) in [
        ("x", "old"),
        ("y", "old"),
        ("there", "four"),
        ("tag", "\"other\""),
        ("jar", jar),
        ("netrc", netrc),
        (".netrc", netrc),
        ("conf", "header = \"X: y\"\n"),
    ] {
        fs::write(dir.join(name), content).unwrap();
    }
    fs::create_dir(dir.join("sub")).unwrap();
}

/// Returns the files below a directory by name. Each has its content, its permission bits, and a
/// flag that is true if its modification time is more than a day ago.
fn files(dir: &Path) -> BTreeMap<String, (Vec<u8>, u32, bool)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, facts)| (format!("{name}/{inner}"), facts)));
            continue;
        }
        let metadata = path.metadata().unwrap();
        let is_old = metadata.modified().unwrap().elapsed().is_ok_and(|age| age.as_secs() > 86_400);
        found.insert(name, (fs::read(&path).unwrap(), metadata.permissions().mode(), is_old));
    }
    found
}

/// An HTTP server that stores the requests it receives. The path of a request determines the
/// response, and each connection serves one request.
struct RecordingServer {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It wakes the thread that accepts.
        let _ = TcpStream::connect(&self.address);
    }
}

impl RecordingServer {
    fn start() -> RecordingServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        thread::spawn(move || {
            for stream in listener.incoming().flatten().take_while(|_| !ends.load(Ordering::SeqCst)) {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(&stream, &kept));
            }
        });
        RecordingServer { address, requests, is_over }
    }
}

fn serve(mut stream: &TcpStream, kept: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    if reader.fill_buf().ok()?.first() == Some(&0x16) {
        let hello = client_hello(&mut reader)?;
        kept.lock().unwrap().push(hello);
        return None;
    }
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let field = |name: &str| {
            let lower = head.to_ascii_lowercase();
            lower.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let length = field("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
        let waits = field("expect:").is_some();
        if waits {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        // The boundary of a form differs each time.
        let boundary = field("content-type:").and_then(|value| Some(value.split_once("boundary=")?.1.to_owned()));
        let mut text = head.clone() + &String::from_utf8_lossy(&body);
        if let Some(boundary) = boundary {
            text = text.to_ascii_lowercase().replace(&boundary, "BOUNDARY");
        }
        kept.lock().unwrap().push(text);
        let request = head.lines().find(|line| !line.starts_with("PROXY")).unwrap_or_default();
        if request.starts_with("CONNECT") {
            stream.write_all(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n").ok()?;
            continue;
        }
        let target = request.split(' ').nth(1).unwrap_or_default();
        let kind = target.trim_start_matches("http://").split('/').nth(1).unwrap_or_default();
        return stream.write_all(&answer(kind, request.starts_with("HEAD"))).ok();
    }
}

/// Reads a TLS ClientHello from a connection. Returns a text that describes it: its length, and the
/// protocols that ALPN offers.
fn client_hello(reader: &mut impl Read) -> Option<String> {
    let mut header = [0; 5];
    reader.read_exact(&mut header).ok()?;
    let mut hello = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    reader.read_exact(&mut hello).ok()?;
    let offers = |protocol: &[u8]| hello.windows(protocol.len()).any(|bytes| bytes == protocol);
    let protocols = [&b"\x02h2"[..], b"\x08http/1.1"].map(offers);
    Some(format!("a hello of {} bytes, HTTP/2 and HTTP/1.1: {protocols:?}", hello.len()))
}

fn answer(kind: &str, is_head: bool) -> Vec<u8> {
    let (status, fields, body): (&str, &str, &[u8]) = match kind {
        "gone" => ("404 Not Found", "", b"gone"),
        "301" => ("301 Moved", "Location: /plain/there\r\n", b""),
        "302" => ("302 Found", "Location: /plain/there\r\n", b""),
        "303" => ("303 See Other", "Location: /plain/there\r\n", b""),
        "401" => ("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\n", b""),
        "407" => ("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"r\"\r\n", b""),
        "latin" => ("200 OK", "Content-Type: text/plain; charset=iso-8859-1\r\n", b"caf\xe9"),
        _ => ("200 OK", "Content-Disposition: attachment; filename=named\r\nETag: \"tag\"\r\n", b"hello"),
    };
    let length = if kind == "long" { 100 } else { body.len() };
    let dates = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nSet-Cookie: s=1; Max-Age=1000\r\n";
    let head = format!("HTTP/1.1 {status}\r\n{fields}{dates}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), if is_head { b"" } else { body }].concat()
}
