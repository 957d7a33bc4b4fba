use std::ffi::OsString;
use std::time::Instant;

use haul::Target;
use haul::transfer::TransferOutcome;

use super::*;
use crate::build_plan;
use crate::file_and_environment_access::SystemFilesAndEnvironment;
use crate::parse::parse_as;
use crate::program_persona::ProgramPersona;

/// Returns the settings of the first stage of a command line with these options.
fn stage(options: &str) -> StageArgs {
    let words = options.split_whitespace().chain(["http://h/"]).map(OsString::from).collect::<Vec<_>>();
    let parsed = parse_as(ProgramPersona::Haul, words, &mut SystemFilesAndEnvironment).expect("valid options");
    let plan = build_plan::resolve(parsed, &mut SystemFilesAndEnvironment).expect("a plan");
    plan.groups[0].stages[0].clone()
}

/// Returns the remedy for an error of this kind and cause that does not belong to a transfer.
fn of(kind: ErrorKind, cause: &str) -> String {
    remedy(&Error::new(kind, cause), None).into_owned()
}

/// Returns the remedy for a file that could not be written because of this error.
fn of_write(kind: io::ErrorKind) -> String {
    remedy(&Error::with_source(ErrorKind::Write, "failed to write f", io::Error::from(kind)), None).into_owned()
}

/// Returns the remedy for an error of a transfer that has these settings and has sent this number
/// of requests.
fn of_transfer(kind: ErrorKind, cause: &str, requests: u32, stage: &StageArgs) -> String {
    let target = Target::parse("http://h/").expect("a URL");
    let mut outcome = TransferOutcome::unsent(target, Error::new(kind, cause), Instant::now());
    outcome.facts.requests = requests;
    let report = TransferReport {
        url: "http://h/",
        number: 0,
        stage: 0,
        method: "GET",
        file: None,
        outcome: &outcome,
        settings: Some(stage),
    };
    remedy(outcome.result.as_ref().expect_err("an error"), Some(&report)).into_owned()
}

#[test]
fn certificate_error_remedy_depends_on_the_cause() {
    let of = |cause: &str| of(ErrorKind::PeerCertificate, cause);
    for cause in [UNKNOWN_ISSUER, SELF_SIGNED] {
        assert!(of(cause).contains("trust it with --cacert FILE, or skip verification with -k"));
        assert!(of(&format!("the proxy: {cause}")).contains("--proxy-cacert FILE"));
    }
    assert!(of("it is not valid for name \"h\"; it is for a.example").starts_with("use one of its names"));
    assert!(of("it expired on Jan  1 00:00:00 2002 GMT").contains("must renew it"));
    assert!(of("it is not valid before Jan  1 00:00:00 3000 GMT").contains("check the clock"));
}

#[test]
fn connection_error_remedy_depends_on_the_cause() {
    let of = |cause: &str| of(ErrorKind::Connect, cause);
    assert!(of("Connection refused (os error 111)").starts_with("nothing listens on that port: check"));
    assert!(of("Network is unreachable (os error 101)").contains("-4 and -6"));
    assert!(of("No route to host (os error 113)").contains("check the network"));
    assert_eq!(of("something else"), "");
    assert!(super::remedy(&Error::new(ErrorKind::ProxyResolve, "x"), None).contains("--noproxy '*'"));
}

#[test]
fn name_lookup_error_remedy_depends_on_the_cause() {
    assert!(of(ErrorKind::Resolve, "the name has no address").contains("--dns-servers"));
    assert!(of(ErrorKind::Resolve, "h.invalid is reserved").contains("a name that can exist"));
}

#[test]
fn unknown_scheme_remedy_suggests_http_or_https() {
    let of = |scheme: &str| of(ErrorKind::UnsupportedScheme, &format!("the scheme \"{scheme}\" is not supported"));
    assert_eq!(of("htp"), "did you mean http://?");
    assert_eq!(of("htttps"), "did you mean https://?");
    assert_eq!(of("gopher"), "haul has http and https");
}

#[test]
fn output_file_error_remedy_depends_on_the_cause() {
    for kind in [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory] {
        let error = Error::with_source(ErrorKind::Write, "failed to write d/f", io::Error::from(kind));
        assert!(file_remedy(&error, "", true).contains("--create-dirs"));
        assert_eq!(of_write(kind), "the file or its directory does not exist", "no output of a transfer");
    }
    assert!(of_write(io::ErrorKind::PermissionDenied).contains("name another place"));
    assert!(of_write(io::ErrorKind::ReadOnlyFilesystem).contains("--output-dir"));
    assert!(of_write(io::ErrorKind::StorageFull).contains("free some space"));
    assert!(of_write(io::ErrorKind::QuotaExceeded).contains("free some space"));
    assert!(of_write(io::ErrorKind::IsADirectory).contains("-O --output-dir DIRECTORY"));
    assert_eq!(of_write(io::ErrorKind::BrokenPipe), "");
    assert!(of(ErrorKind::Write, "its values are no rows: 2 and 3").contains("use --jsonl"));
    assert!(of(ErrorKind::TooLarge, "more than the 5 bytes that a record may have").contains("--jsonl=no-body"));
}

#[test]
fn time_limit_remedy_names_option_and_value() {
    let of = |cause: &str, requests, options: &str| of_transfer(ErrorKind::Timeout, cause, requests, &stage(options));
    assert_eq!(of("it takes too long", 0, ""), "--connect-timeout SECONDS sets another limit");
    assert_eq!(of("the server was silent for 60 s", 1, ""), "--stall-time SECONDS sets another limit");
    assert_eq!(of("it is slow", 1, ""), "--speed-limit and --speed-time set this limit");
    assert_eq!(of("no time is left", 1, "-m 2.5"), "raise --max-time, which is 2.5 s");
    assert_eq!(of("no time is left", 0, "-m 2.5 --connect-timeout 1"), "raise --connect-timeout, which is 1 s");
    assert_eq!(of("no time is left", 0, "--connect-timeout 1"), "raise --connect-timeout, which is 1 s");
    assert_eq!(of("no time is left", 1, "--connect-timeout 1"), "");
}

#[test]
fn error_remedy_names_the_option_that_helps() {
    assert!(of(ErrorKind::TlsHandshake, "the server does not speak TLS").contains("try http://"));
    assert!(of(ErrorKind::TooManyRedirects, "x").contains("--max-redirs N"));
    assert!(of(ErrorKind::ContentCoding, "the content coding is broken").contains("--raw"));
    assert!(of(ErrorKind::Auth, "x").contains("--anyauth"));
    assert_eq!(of(ErrorKind::TooLarge, "x"), "");
    assert!(of(ErrorKind::TooLarge, "larger than the 5 bytes that are allowed").contains("--max-filesize"));
    assert!(of(ErrorKind::Checksum, "x").contains("do not use it"));
    assert!(of(ErrorKind::ContentCoding, "broken gzip body").contains("--raw"));
    assert!(of(ErrorKind::CaFile, "x: No such file").contains("check the name"));
    assert!(of(ErrorKind::CaFile, "x").contains("BEGIN CERTIFICATE"));
    assert!(of(ErrorKind::CaFile, "found no CA certificates on this system").contains("ca-certificates"));
    assert!(of(ErrorKind::Setup, "the lowest TLS version is above the highest").contains("--tls-max"));
}

#[test]
fn remedy_names_option_that_allows_the_auth_scheme() {
    let of = |names| of(ErrorKind::Auth, &format!("the server offers only {names}, which the request may not use"));
    assert!(of("Negotiate").starts_with("--negotiate "));
    assert!(of("NTLM or Negotiate").starts_with("--negotiate "));
    assert!(of("NTLM").contains("does not support NTLM"));
    assert!(of("Hawk").starts_with("--anyauth "));
}

#[test]
fn error_status_remedy_depends_on_the_options() {
    let of = |status, options: &str| status_remedy(status, Some(&stage(options)));
    assert!(of(401, "").contains("-u USER") && of(403, "").contains("cookies"));
    assert!(of(401, "-u me:word").contains("does not accept these credentials"));
    assert!(of(403, "--oauth2-bearer t").contains("do not permit it"));
    assert!(of(403, "-H Authorization:x").contains("do not permit it"));
    assert!(of(405, "").contains("leave out -X") && of(429, "").contains("--rate-host"));
    assert_eq!((of(407, ""), of(418, "")), (PROXY_LOGIN, ""));
    assert!(of(404, "").contains("path of the URL") && of(503, "").contains("--retry N"));
}

#[test]
fn pagination_limit_remedy_names_its_option() {
    let remedy_of = |fault: PaginationError| {
        remedy(&Error::with_source(ErrorKind::Url, "the listing cannot continue", fault), None).into_owned()
    };
    assert!(
        remedy_of(PaginationError::TooManyPages { max: 5, next: "http://h/6".to_owned() }).contains("--paginate-max N")
    );
}

#[test]
fn handshake_remedy_names_offer_and_alternatives() {
    let closed = "the server closed the connection in the TLS handshake: unexpected end of file";
    let of = |cause: &str, options: &str| of_transfer(ErrorKind::TlsHandshake, cause, 0, &stage(options));
    assert_eq!(
        of(closed, ""),
        "haul offered TLS 1.2 and 1.3 with ALPN h2, http/1.1; if the port does not speak TLS, use http://; \
         try --http1.1 or --tls-max 1.2; 'haul doctor URL' shows more"
    );
    assert_eq!(
        of("TLS handshake failed: received fatal alert: ProtocolVersion", "--tlsv1.3 --no-alpn"),
        "haul offered TLS 1.3 alone with no ALPN; try without --tlsv1.3; 'haul doctor URL' shows more"
    );
    let version = "TLS handshake failed: received fatal alert: ProtocolVersion";
    assert_eq!(
        of(version, ""),
        "haul offered TLS 1.2 and 1.3 with ALPN h2, http/1.1; the server has older versions only, which are not safe; \
         'haul doctor URL' shows more"
    );
    assert!(of(version, "--tls-max 1.2").contains("try without --tls-max; "));
    assert_eq!(
        of("TLS handshake failed", "--tls-max 1.2 --http1.1"),
        "haul offered TLS 1.2 alone with ALPN http/1.1; 'haul doctor URL' shows more"
    );
    assert_eq!(of("the proxy: TLS handshake failed", ""), PROXY_ORIGIN);
}

#[test]
fn broken_response_remedy_depends_on_the_error_kind() {
    let of = |kind, cause: &str| of_transfer(kind, cause, 1, &stage(""));
    assert!(of(ErrorKind::EmptyReply, "x").contains("use https://"));
    assert!(of(ErrorKind::UnsupportedScheme, "server sent something that is not HTTP/1").contains("--http0.9"));
    assert!(
        of(ErrorKind::UnsupportedScheme, "redirect to protocol \"ftp\", which is not allowed")
            .contains("--no-location")
    );
    assert!(of(ErrorKind::PartialBody, "x").contains("-C - continues"));
    assert!(of(ErrorKind::Receive, "x").contains("try again"));
    let alert = "the server ended TLS by an alert: CertificateRequired, it wants a client certificate";
    assert!(of(ErrorKind::Receive, alert).starts_with("present one with -E FILE"));
}

#[test]
fn range_error_remedy_depends_on_the_options() {
    let of = |cause: &str, options: &str| of_transfer(ErrorKind::Range, cause, 1, &stage(options));
    let whole = "asked for a range, the server sent the whole instead of a range";
    assert!(of(whole, "-C 5").contains("leave out -C"));
    assert!(of(whole, "").contains("--split 1"));
    assert!(of("asked for the range 0-3, the server sent another one", "-r 0-3").contains("-v shows"));
    assert!(of("asked for no range, the server sent a part of unknown place or total", "").contains("-v shows"));
}
