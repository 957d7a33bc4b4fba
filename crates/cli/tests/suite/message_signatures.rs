//! Tests of requests that are signed by RFC 9421: openssl verifies the signatures that a server
//! receives.

use crate::common;

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{answering, curl_in, installed, page, program, received, run, run_haul};

/// An Ed25519 private key, as the seed that `--httpsig-key` accepts.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

/// Returns the value of a header field in a request head.
fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name} in {head}"))
}

/// Writes the signature base of a request (RFC 9421 section 2.5) and its signature to files in
/// `dir`. Both are taken from the head that the server received.
fn write_signed(dir: &Path, head: &str) {
    let (method, rest) = head.split_once(' ').unwrap();
    let (path, query) = rest.split_once(' ').unwrap().0.split_once('?').unwrap();
    let params = field(head, "Signature-Input").strip_prefix("sig1=").unwrap();
    let names = params.strip_prefix('(').unwrap().split_once(')').unwrap().0;
    let lines = names.split(' ').map(|quoted| {
        let value = match quoted.trim_matches('"') {
            "@method" => method.to_owned(),
            "@authority" => field(head, "Host").to_owned(),
            "@path" => path.to_owned(),
            "@query" => format!("?{query}"),
            "x-part" => field(head, "X-Part").to_owned(),
            other => panic!("{other} is signed"),
        };
        format!("{quoted}: {value}\n")
    });
    let text: String = lines.collect();
    fs::write(dir.join("text"), format!("{text}\"@signature-params\": {params}")).unwrap();
    let signature = field(head, "Signature").strip_prefix("sig1=:").unwrap().strip_suffix(':').unwrap();
    fs::write(dir.join("signature"), STANDARD.decode(signature).unwrap()).unwrap();
}

/// Runs openssl in `dir`. Returns its output.
fn openssl(dir: &Path, words: &str) -> Vec<u8> {
    let ran = run(program("openssl").args(words.split(' ')).current_dir(dir));
    assert_eq!(ran.code, 0, "openssl {words}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn ed25519_signatures_are_verified_by_openssl() {
    if installed("openssl", "message signatures").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("key.hex"), format!("{SEED}\n")).unwrap();
    // The fixed beginning of a PKCS#8 file with such a key (RFC 8410 section 7).
    let pkcs8 = format!("302e020100300506032b657004220420{SEED}");
    let bytes = (0..pkcs8.len()).step_by(2).map(|at| u8::from_str_radix(&pkcs8[at..at + 2], 16).unwrap());
    fs::write(dir.path().join("key.der"), bytes.collect::<Vec<u8>>()).unwrap();
    openssl(dir.path(), "pkey -in key.der -inform DER -pubout -out public.pem");
    for parts in [&[][..], &["--httpsig-headers", "x-part: query path authority method"]] {
        let peer = page("x");
        let url = peer.url("/a%20b?c=d");
        let key = ["-s", "--httpsig-key", "@key.hex", "--httpsig-keyid", "my key", "-H", "X-Part: one"];
        curl_in(dir.path(), &[&key[..], parts, &[&url]].concat()).ok();
        let head = received(&peer, 0);
        write_signed(dir.path(), &head);
        assert!(field(&head, "Signature-Input").ends_with(";keyid=\"my key\";alg=\"ed25519\""), "{head}");
        let verify = "pkeyutl -verify -pubin -inkey public.pem -rawin -in text -sigfile signature";
        openssl(dir.path(), verify);
    }
}

#[test]
fn hmac_signatures_match_those_of_openssl() {
    if installed("openssl", "message signatures").is_none() {
        return;
    }
    let (dir, peer) = (tempfile::tempdir().unwrap(), page("x"));
    let secret = "00ff10";
    let url = peer.url("/?");
    run_haul(["-s", "--httpsig-algo", "hmac-sha256", "--httpsig-key", secret, "--httpsig-keyid", "k", &url]).ok();
    write_signed(dir.path(), &received(&peer, 0));
    let expected = openssl(dir.path(), &format!("dgst -sha256 -mac HMAC -macopt hexkey:{secret} -binary text"));
    assert_eq!(fs::read(dir.path().join("signature")).unwrap(), expected);
}

#[test]
fn redirects_to_other_origins_are_not_signed() {
    for (option, is_signed) in [("--location", false), ("--location-trusted", true)] {
        let other = page("x");
        let reply = format!(
            "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            other.url("/")
        );
        let first = answering(reply);
        run_haul(["-s", option, "--httpsig-key", SEED, "--httpsig-keyid", "k", &first.url("/")]).ok();
        assert!(received(&first, 0).contains("\r\nSignature: sig1=:"), "{}", received(&first, 0));
        assert_eq!(received(&other, 0).contains("Signature"), is_signed, "{}", received(&other, 0));
    }
}

#[test]
fn signature_field_of_the_user_replaces_signing() {
    let peer = page("x");
    let url = peer.url("/");
    run_haul(["-s", "-H", "Signature: own", "--httpsig-key", SEED, "--httpsig-keyid", "k", &url]).ok();
    let head = received(&peer, 0);
    assert!(head.contains("\r\nSignature: own\r\n") && !head.contains("Signature-Input"), "{head}");
}

#[test]
fn unusable_signature_options_send_nothing() {
    let peer = page("x");
    let url = peer.url("/");
    for options in [
        &["--httpsig-key", SEED][..],
        &["--httpsig-keyid", "k"],
        &["--httpsig-key", "00", "--httpsig-keyid", "k"],
        &["--httpsig-key", "no digits", "--httpsig-keyid", "k"],
        &["--httpsig-key", "@/none", "--httpsig-keyid", "k"],
        &["--httpsig-key", SEED, "--httpsig-keyid", "k", "--httpsig-headers", "missing:"],
        &["--httpsig-algo", "rsa-pss-sha512"],
    ] {
        let ran = run_haul([options, &["-sS", &url]].concat());
        assert!(ran.code != 0 && !ran.stderr.contains(SEED), "{options:?}: {}", ran.stderr);
    }
    assert!((0..peer.connections()).all(|connection| received(&peer, connection).is_empty()));
}
