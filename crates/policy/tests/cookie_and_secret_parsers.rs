//! Property tests of the parsers of cookies, state files and secrets: no input makes them panic,
//! and every accepted input is valid. The cookie jar is compared with a model.

mod common;

use std::collections::BTreeMap;

use haul_policy::Target;
use haul_policy::alt_svc::{self, AltSvcStore};
use haul_policy::auth::{
    AllowedAuthSchemes, ChosenAuthScheme, Credentials, DigestSession, choose_scheme, parse_challenges,
};
use haul_policy::cookie::{Cookie, CookieKey, CookieStore, lwp, netscape};
use haul_policy::hsts::{self, HstsStore};
use haul_policy::multipart::{
    FormNameEscape, FormPart, FormPartContent, MultipartBoundary, MultipartLayout, MultipartPiece,
};
use haul_policy::proxy::socks::{SocksDestination, SocksHandshake, SocksStep};
use haul_policy::proxy::{NoProxy, Proxy, ProxyKind};
use haul_policy::{netrc, urlencode};
use proptest::collection::vec;
use proptest::prelude::*;

const NOW: u64 = 1_800_000_000;

/// Generates bytes that look enough like a field value to reach most of its parser.
fn fieldish(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => (0..words.len()).prop_map(move |at| words[at].as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ];
    vec(word, 0..24).prop_map(|words| words.concat())
}

fn line_safe(bytes: &[u8]) -> bool {
    !bytes.iter().any(|b| matches!(b, 0 | b'\r' | b'\n'))
}

proptest! {
    #![proptest_config(common::config(4000))]

    #[test]
    fn set_cookie_survives_every_cookie_file_format(field in fieldish(&[
        "a", "=", "b", ";", " ", "\t", "Domain=", "a.example", ".example", "co.uk", "Path=", "/", "/p", "Secure", "HttpOnly",
        "SameSite=", "Lax", "Max-Age=", "-1", "60", "Expires=", "Wed, 01 Jan 2030 00:00:00 GMT", "__Host-", "__Secure-", "\"", "\\",
    ])) {
        let at = Target::parse("https://w.a.example/p/q").unwrap();
        let mut jar = CookieStore::new();
        let taken = jar.set(&at, &field, NOW);
        prop_assert!(jar.len() <= 1);
        if taken.is_ok() {
            for (text, read) in [
                (netscape::write(&jar, NOW), None),
                (lwp::write(&jar, NOW), Some(())),
            ] {
                let read = match read {
                    None => netscape::read(&text, NOW),
                    Some(()) => lwp::read(&text, NOW).expect("its own magic"),
                };
                prop_assert_eq!(read.refused, 0, "{}", text.escape_ascii());
                let mut again = CookieStore::new();
                again.load(read.cookies);
                prop_assert_eq!(again.cookie_for(&at, NOW), jar.cookie_for(&at, NOW));
            }
            let value = jar.cookie_for(&at, NOW).unwrap_or_default();
            prop_assert!(line_safe(&value) && !value.contains(&b';'));
            let other = Target::parse("https://a.example.evil.example/p/q").unwrap();
            prop_assert_eq!(jar.cookie_for(&other, NOW), None);
        }
    }

    #[test]
    fn any_text_is_accepted_as_cookie_file(text in fieldish(&[
        "# Netscape HTTP Cookie File\n", "#LWP-Cookies-1.0\n", "#HttpOnly_", ".a.example", "a.example", "\t", "TRUE", "FALSE", "/",
        "0", "1900000000", "-1", "n", "v", "\n", "\r\n", "Set-Cookie:", "Set-Cookie3: ", "n=v", "; domain=", "; path=\"/\"", "\"", "\\",
        "; expires=\"2030-01-01 00:00:00Z\"", "co.uk", "127.0.0.1",
    ])) {
        for read in [Some(netscape::read(&text, NOW)), lwp::read(&text, NOW)].into_iter().flatten() {
            let mut jar = CookieStore::new();
            jar.load(read.cookies);
            let written = netscape::write(&jar, NOW);
            let mut again = CookieStore::new();
            again.load(netscape::read(&written, NOW).cookies);
            prop_assert_eq!(netscape::write(&again, NOW), written);
        }
    }

    #[test]
    fn digest_answer_to_any_challenge_is_well_formed(field in fieldish(&[
        "Basic", "Digest", "Bearer", "NTLM", "Negotiate", " ", ",", "=", "\"", "\\", "realm=\"r\"", "nonce=n", "nonce=\"\\\"\"",
        "qop=\"auth\"", "qop=auth-int", "algorithm=SHA-256", "algorithm=MD5-sess", "userhash=true", "charset=UTF-8", "stale=true", "abc==",
        "opaque=\"\t\"", "domain=\"/a\"",
    ]), info in fieldish(&["nextnonce=", "\"", "x", ",", "\\", "\0"])) {
        let challenges = parse_challenges([&field[..]]);
        if let Ok(ChosenAuthScheme::Digest(challenge)) = choose_scheme(&challenges, AllowedAuthSchemes::ANY) {
            let me = Credentials::new("u\"\u{e9}", "p").unwrap();
            let mut digest = DigestSession::new(challenge);
            for _ in 0..2 {
                let value = digest.authorize(&me, "GET", "/x?y", None, "c").unwrap();
                prop_assert!(line_safe(&value));
                let read = parse_challenges([&value[..]]);
                prop_assert_eq!(read.len(), 1, "{}", value.escape_ascii());
                prop_assert_eq!(read[0].get("uri"), Some(&b"/x?y"[..]));
                digest.on_authentication_info(&info);
            }
        }
    }

    #[test]
    fn netrc_entry_in_any_file_matches_the_login(text in fieldish(&[
        "machine ", "default ", "login ", "password ", "account ", "macdef ", "a ", "b ", "l ", "p ", "\n", "\n\n", "#", "\"", "\\",
    ])) {
        for host in ["a", "b"] {
            for login in [None, Some(&b"l"[..])] {
                if let (Ok(Some(entry)), Some(login)) = (netrc::find(&text, host, login), login) {
                    prop_assert!(entry.login.map_or(entry.password.is_some(), |own| own == login));
                }
            }
        }
    }

    #[test]
    fn hsts_and_alt_svc_stores_survive_saving(text in fieldish(&[
        "*", ",", " ", ".", "a.example", "10.0.0.0", "/8", "/33", "::1", "[", "]", "/", "max-age=", "60", "\"", ";", "includeSubDomains",
        "h2=", ":443", "ma=1", "persist=1", "clear", "\n", "#", "20300101 00:00:00", "unlimited", "h1 ", "443 ", "%2F", "0 0",
    ])) {
        let text = String::from_utf8_lossy(&text);
        let site = Target::parse("https://a.example/").unwrap();
        let _ = NoProxy::parse(&text).matches(&site);
        let _ = hsts::parse(text.as_bytes());
        let _ = alt_svc::parse(text.as_bytes());
        let mut known = HstsStore::new();
        known.load(&text, NOW);
        known.on_field(&site, text.as_bytes(), NOW);
        let mut again = HstsStore::new();
        again.load(&known.to_text(NOW), NOW);
        prop_assert_eq!(again.to_text(NOW), known.to_text(NOW));
        let mut known = AltSvcStore::new();
        known.load(&text, NOW);
        known.on_field(&site, alt_svc::AlpnProtocol::H2, text.as_bytes(), NOW);
        let mut again = AltSvcStore::new();
        again.load(&known.to_text(NOW), NOW);
        prop_assert_eq!(again.to_text(NOW), known.to_text(NOW));
        if let Ok(proxy) = Proxy::parse(&text) {
            prop_assert!(Proxy::parse(&proxy.to_string()).is_ok());
        }
    }

    #[test]
    fn socks_result_does_not_depend_on_reply_pieces(replies in vec(prop_oneof![Just(5u8), Just(0), Just(1), Just(2), Just(3), Just(90), any::<u8>()], 0..40), split in 1..9usize, four: bool) {
        let kind = if four { ProxyKind::Socks4a } else { ProxyKind::Socks5h };
        let me = Credentials::new("u", "p").unwrap();
        let play = |size: usize| {
            let mut handshake = SocksHandshake::new(kind, SocksDestination::Name("h"), 1, Some(&me)).unwrap();
            let (mut used_in_all, mut sent) = (0, Vec::new());
            for chunk in replies.chunks(size) {
                let mut rest = chunk;
                loop {
                    let wants = handshake.missing_bytes();
                    match handshake.receive(rest) {
                        Err(error) => return (sent, Err(error)),
                        Ok((used, step)) => {
                            used_in_all += used;
                            rest = &rest[used..];
                            match step {
                                SocksStep::NeedMore => { assert!(rest.is_empty() && handshake.missing_bytes() > 0 && wants > 0); break }
                                SocksStep::Send(bytes) => sent.push(bytes),
                                SocksStep::Token(_) | SocksStep::Level(_) => panic!("GSS-API was not offered"),
                                SocksStep::Done => return (sent, Ok(Some(used_in_all))),
                            }
                        }
                    }
                }
            }
            (sent, Ok(None))
        };
        prop_assert_eq!(play(split), play(replies.len().max(1)));
    }

    #[test]
    fn multipart_length_equals_the_number_of_bytes(names in vec((vec(any::<u8>(), 0..8), vec(any::<u8>(), 0..8), proptest::option::of(0..1000u64)), 0..5), entropy: [u8; 16], backslash: bool) {
        let escape = if backslash { FormNameEscape::Backslash } else { FormNameEscape::Percent };
        let parts: Vec<FormPart> = names.iter().enumerate().map(|(index, (name, file, length))| {
            FormPart::file(name, file, FormPartContent::Source { index, length: *length })
        }).collect();
        let layout = MultipartLayout::new(&parts, &MultipartBoundary::new(entropy), escape).unwrap();
        let literal: Vec<u8> = layout.pieces.iter().filter_map(|piece| match piece {
            MultipartPiece::Literal(bytes) => Some(bytes.clone()),
            MultipartPiece::Source { .. } => None,
        }).flatten().collect();
        // A delimiter, three lines of head and the content's end for each part, the last delimiter:
        // no name added a line.
        prop_assert_eq!(literal.iter().filter(|b| **b == b'\n').count(), parts.len() * 5 + 1);
        prop_assert!(!literal.contains(&0));
        let sources = names.iter().try_fold(0, |sum, (_, _, length)| Some(sum + (*length)?));
        prop_assert_eq!(layout.length, sources.map(|sum| sum + literal.len() as u64));
        let encoded = urlencode::form_encode(&entropy);
        prop_assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%+".contains(&b)));
    }
}

/// Operations on cookie jars that share a file.
#[derive(Clone, Debug)]
enum JarOp {
    Set { jar: usize, name: usize, value: u8 },
    Remove { jar: usize, name: usize },
    Save { jar: usize },
}

fn key(name: usize) -> String {
    format!("n{name}")
}

proptest! {
    #![proptest_config(common::config(3000))]

    /// Checks three jars with one file: after each save, the file contains the last changes of the
    /// jar that was saved, and all saved changes of the other jars.
    #[test]
    fn jars_sharing_a_file_keep_all_changes(ops in vec(prop_oneof![
        3 => (0..3usize, 0..6usize, any::<u8>()).prop_map(|(jar, name, value)| JarOp::Set { jar, name, value }),
        1 => (0..3usize, 0..6usize).prop_map(|(jar, name)| JarOp::Remove { jar, name }),
        2 => (0..3usize).prop_map(|jar| JarOp::Save { jar }),
    ], 0..40)) {
        let at = Target::parse("http://h.example/").unwrap();
        let initial = b"h.example\tFALSE\t/\tFALSE\t0\tn0\tinitial\n";
        let mut file = initial.to_vec();
        let mut jars: Vec<CookieStore> = (0..3).map(|_| {
            let mut jar = CookieStore::new();
            jar.load(netscape::read(initial, NOW).cookies);
            jar
        }).collect();
        // The model: the file's values, and for each jar its values and what it has yet to write.
        let mut model: BTreeMap<String, String> = BTreeMap::from([(key(0), "initial".to_owned())]);
        let mut seen: Vec<BTreeMap<String, String>> = vec![model.clone(); 3];
        let mut pending: Vec<BTreeMap<String, Option<String>>> = vec![BTreeMap::new(); 3];
        let mut on_disk: Vec<Vec<String>> = vec![vec![key(0)]; 3];
        for op in ops {
            match op {
                JarOp::Set { jar, name, value } => {
                    jars[jar].set(&at, format!("n{name}={value}").as_bytes(), NOW).unwrap();
                    seen[jar].insert(key(name), value.to_string());
                    pending[jar].insert(key(name), Some(value.to_string()));
                }
                JarOp::Remove { jar, name } => {
                    jars[jar].set(&at, format!("n{name}=; Max-Age=0").as_bytes(), NOW).unwrap();
                    if seen[jar].remove(&key(name)).is_some() {
                        if on_disk[jar].contains(&key(name)) {
                            pending[jar].insert(key(name), None);
                        } else {
                            pending[jar].remove(&key(name));
                        }
                    }
                }
                JarOp::Save { jar } => {
                    let changes = jars[jar].changes();
                    let mut disk = CookieStore::new();
                    disk.load(netscape::read(&file, NOW).cookies);
                    changes.apply_to(&mut disk);
                    file = netscape::write(&disk, NOW);
                    jars[jar].mark_saved(&changes);
                    for (name, value) in core::mem::take(&mut pending[jar]) {
                        match value {
                            Some(value) => { on_disk[jar].push(name.clone()); model.insert(name, value); }
                            None => { on_disk[jar].retain(|other| *other != name); model.remove(&name); }
                        }
                    }
                    let read: BTreeMap<String, String> = netscape::read(&file, NOW).cookies.iter().map(|cookie| {
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        (text(cookie.name()), text(cookie.value()))
                    }).collect();
                    prop_assert_eq!(&read, &model);
                }
            }
        }
        for (jar, seen) in jars.iter().zip(&seen) {
            prop_assert_eq!(jar.len(), seen.len());
            let keys: Vec<CookieKey> = jar.iter().map(Cookie::key).collect();
            prop_assert!(keys.iter().all(|key| seen.contains_key(&*String::from_utf8_lossy(&key.name))));
        }
    }
}
