//! Tests of authentication with origins: Basic, Digest and tokens against a scripted server, with
//! both drivers.

mod negotiate;

use crate::common;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{DRIVERS, following};
use haul::body::upload::RequestBody;
use haul::state::auth::{AllowedAuthSchemes, AuthOptions, Credentials, NetrcFileUse};
use haul::{Client, ErrorKind, RequestOptions};
use haul_policy::auth::{DigestAlgorithm, parse_challenges};

/// A request that the server received.
#[derive(Debug, Clone)]
struct RequestRecord {
    connection: usize,
    method: String,
    target: String,
    authorization: Option<String>,
    content: Vec<u8>,
}

/// A server that answers each request with the status line and the fields that `decide` returns for
/// the request.
struct ChallengeServer {
    url: String,
    log: Arc<Mutex<Vec<RequestRecord>>>,
}

impl ChallengeServer {
    fn start(decide: impl Fn(&RequestRecord, &[RequestRecord]) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<RequestRecord>>> = Arc::default();
        let (seen, decide) = (Arc::clone(&log), Arc::new(decide));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (seen, decide) = (Arc::clone(&seen), Arc::clone(&decide));
                thread::spawn(move || serve(connection, &stream.unwrap(), &seen, &*decide));
            }
        });
        Self { url, log }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn take(&self) -> Vec<RequestRecord> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

fn serve(
    connection: usize,
    stream: &TcpStream,
    log: &Mutex<Vec<RequestRecord>>,
    decide: &dyn Fn(&RequestRecord, &[RequestRecord]) -> String,
) {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(seen) = read_request(connection, &mut reader, writer) {
        let reply = {
            let mut log = log.lock().unwrap();
            let reply = decide(&seen, &log);
            log.push(seen);
            reply
        };
        let reply = format!("HTTP/1.1 {reply}\r\nContent-Length: 3\r\n\r\nok\n");
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(
    connection: usize,
    reader: &mut BufReader<&TcpStream>,
    mut writer: &TcpStream,
) -> Option<RequestRecord> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut chunked, mut authorization) = (0, false, None);
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        let Some((name, value)) = field.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "transfer-encoding" => chunked = true,
            "authorization" => authorization = Some(value.to_owned()),
            "expect" => writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?,
            _ => {}
        }
    }
    let mut content = vec![0; length];
    reader.read_exact(&mut content).ok()?;
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).ok()? + 2];
        reader.read_exact(&mut chunk).ok()?;
        chunked = chunk.len() > 2;
        content.extend_from_slice(&chunk[..chunk.len() - 2]);
    }
    Some(RequestRecord { connection, method, target, authorization, content })
}

fn md5(text: &str) -> String {
    let mut hasher = DigestAlgorithm::Md5.hasher();
    hasher.update(text.as_bytes());
    hasher.finish()
}

fn parameter(seen: &RequestRecord, name: &str) -> Option<String> {
    let challenges = parse_challenges([seen.authorization.as_deref()?.as_bytes()]);
    challenges.first()?.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Returns true if a request contains a correct Digest answer for the user `me` with the password
/// `secret` and this nonce (RFC 7616 section 3.4.1).
fn proves(seen: &RequestRecord, nonce: &str, content_hash: Option<&str>) -> bool {
    let get = |name| parameter(seen, name).unwrap_or_default();
    let a1 = md5("me:realm:secret");
    let a2 = match content_hash {
        Some(hash) => md5(&format!("{}:{}:{hash}", seen.method, seen.target)),
        None => md5(&format!("{}:{}", seen.method, seen.target)),
    };
    let response = md5(&format!("{a1}:{nonce}:{}:{}:{}:{a2}", get("nc"), get("cnonce"), get("qop")));
    get("nonce") == nonce && get("uri") == seen.target && get("response") == response
}

fn challenge(nonce: &str, more: &str) -> String {
    format!("401 No\r\nWWW-Authenticate: Digest realm=\"realm\", nonce=\"{nonce}\", qop=\"auth\"{more}")
}

fn me(allowed: AllowedAuthSchemes) -> RequestOptions {
    let auth = AuthOptions { allowed, ..AuthOptions::user(Credentials::new("me", "secret").unwrap()) };
    RequestOptions { auth, fail: true, ..following() }
}

#[test]
fn digest_nonce_count_increments_over_requests() {
    for driver in DRIVERS {
        let server =
            ChallengeServer::start(
                |seen, _| if proves(seen, "n1", None) { "200 OK".into() } else { challenge("n1", "") },
            );
        let (client, options) = (Client::new(), me(AllowedAuthSchemes::ANY));
        for path in ["/a?x=1", "/b", "/c"] {
            assert_eq!(driver.get(&client, &server.url(path), &options).ok(), b"ok\n", "{driver:?}");
        }
        let log = server.take();
        let counts: Vec<_> = log.iter().map(|seen| parameter(seen, "nc")).collect();
        assert_eq!(counts, [None, Some("00000001".into()), Some("00000002".into()), Some("00000003".into())]);
        let cnonces: HashSet<_> = log.iter().filter_map(|seen| parameter(seen, "cnonce")).collect();
        assert_eq!((cnonces.len(), log.iter().map(|seen| seen.connection).max()), (3, Some(0)), "{driver:?}");
    }
}

#[test]
fn stale_nonce_is_retried_unlike_wrong_password() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, before| {
            let nonce = format!("n{}", before.len() / 2);
            if proves(seen, &nonce, None) { "200 OK".into() } else { challenge(&nonce, ", stale=true") }
        });
        let (client, options) = (Client::new(), me(AllowedAuthSchemes::DIGEST));
        for path in ["/1", "/2", "/3"] {
            assert_eq!(driver.get(&client, &server.url(path), &options).ok(), b"ok\n", "{driver:?}");
        }
        let wrong = ChallengeServer::start(|_, before| challenge(&format!("n{}", before.len()), ""));
        let got = driver.get(&client, &wrong.url("/"), &options);
        assert_eq!((got.exit, got.status, wrong.take().len()), (22, 401, 2), "{driver:?}");
        let endless = ChallengeServer::start(|_, before| challenge(&format!("n{}", before.len()), ", stale=true"));
        let got = driver.get(&client, &endless.url("/"), &options);
        assert_eq!((got.exit, got.status, endless.take().len()), (22, 401, 51), "{driver:?}");
        // The nonce that was just answered cannot be stale, so the password is wrong.
        let same = ChallengeServer::start(|_, _| challenge("n1", ", stale=true"));
        let got = driver.get(&client, &same.url("/"), &options);
        assert_eq!((got.exit, got.status, same.take().len()), (22, 401, 2), "{driver:?}");
    }
}

#[test]
fn stale_nonces_are_limited_over_redirects() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|_, before| match before.len() % 31 {
            30 => format!("307 Temporary Redirect\r\nLocation: /{}", before.len()),
            _ => challenge(&format!("n{}", before.len()), ", stale=true"),
        });
        let got = driver.get(&Client::new(), &server.url("/"), &me(AllowedAuthSchemes::DIGEST));
        // 30 stale nonces, a redirect, 20 further stale nonces, and the last response.
        assert_eq!((got.exit, got.status, server.take().len()), (22, 401, 52), "{driver:?}");
    }
}

#[test]
fn digest_nextnonce_of_the_server_is_used() {
    let server = ChallengeServer::start(|seen, before| {
        let nonce = if before.len() < 2 { "n1" } else { "n2" };
        if proves(seen, nonce, None) {
            "200 OK\r\nAuthentication-Info: nextnonce=\"n2\"".into()
        } else {
            challenge(nonce, "")
        }
    });
    let (client, options) = (Client::new(), me(AllowedAuthSchemes::DIGEST));
    for _ in 0..3 {
        assert_eq!(DRIVERS[0].get(&client, &server.url("/"), &options).ok(), b"ok\n");
    }
    assert_eq!(server.take().len(), 4);
}

#[test]
fn digest_auth_int_hashes_and_resends_the_body() {
    let hash = md5("a=1");
    for driver in DRIVERS {
        let wanted = hash.clone();
        let server = ChallengeServer::start(move |seen, _| {
            if proves(seen, "n", Some(&wanted)) {
                "200 OK".into()
            } else {
                challenge("n", "").replace("qop=\"auth\"", "qop=\"auth-int\"")
            }
        });
        let mut options =
            RequestOptions { method: "POST".into(), body: Some("a=1".into()), ..me(AllowedAuthSchemes::DIGEST) };
        assert_eq!(driver.get(&Client::new(), &server.url("/"), &options).ok(), b"ok\n", "{driver:?}");
        assert!(server.take().iter().all(|seen| seen.content == b"a=1"));
        // A body outside memory cannot be hashed before it is sent.
        options.body = Some(RequestBody::file("Cargo.toml").unwrap());
        let got = driver.get(&Client::new(), &server.url("/"), &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::Auth), 94), "{driver:?} {}", got.message);
    }
}

#[test]
fn one_shot_body_waits_for_the_digest_challenge() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, _| match seen.target.as_str() {
            "/open" => "200 OK".into(),
            _ if proves(seen, "n", None) => "200 OK".into(),
            _ => challenge("n", ""),
        });
        for path in ["/closed", "/open"] {
            let body = Some(RequestBody::reader(&b"only once"[..]));
            let options = RequestOptions { method: "PUT".into(), body, ..me(AllowedAuthSchemes::DIGEST) };
            assert_eq!(driver.get(&Client::new(), &server.url(path), &options).ok(), b"ok\n", "{driver:?} {path}");
            let contents: Vec<_> = server.take().into_iter().map(|seen| seen.content).collect();
            assert_eq!(contents, [b"".to_vec(), b"only once".to_vec()], "{driver:?} {path}");
        }
    }
}

#[test]
fn single_scheme_is_preemptive_and_ntlm_unsupported() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, _| match (seen.target.as_str(), &seen.authorization) {
            ("/ntlm", _) => "401 No\r\nWWW-Authenticate: NTLM\r\nWWW-Authenticate: Negotiate".into(),
            (_, Some(_)) => "200 OK".into(),
            _ => "401 No\r\nWWW-Authenticate: Basic realm=\"x\"".into(),
        });
        let client = Client::new();
        let token = RequestOptions { auth: AuthOptions::bearer(&b"t0ken"[..]), ..following() };
        for (options, expected) in [(me(AllowedAuthSchemes::BASIC), "Basic bWU6c2VjcmV0"), (token, "Bearer t0ken")] {
            assert_eq!(driver.get(&client, &server.url("/"), &options).ok(), b"ok\n");
            assert_eq!(server.take()[0].authorization.as_deref(), Some(expected), "{driver:?}");
        }
        // With `ANY` the first request has no credentials; later ones below the challenged path
        // have them.
        let any = me(AllowedAuthSchemes::ANY);
        for path in ["/d/1", "/d/2", "/"] {
            assert_eq!(driver.get(&client, &server.url(path), &any).ok(), b"ok\n");
        }
        let known: Vec<_> = server.take().iter().map(|seen| seen.authorization.is_some()).collect();
        assert_eq!(known, [false, true, true, false, true], "{driver:?}");
        let got = driver.get(&client, &server.url("/ntlm"), &any);
        assert_eq!(got.kind, Some(ErrorKind::Auth));
        assert!(got.message.contains("NTLM") && got.message.contains("may not use"), "{}", got.message);
    }
}

#[test]
fn other_origin_gets_only_trusted_or_netrc_credentials() {
    for driver in DRIVERS {
        let second = Arc::new(ChallengeServer::start(|seen, _| match &seen.authorization {
            Some(_) => "200 OK".into(),
            None => challenge("n", ""),
        }));
        let to = second.url("/");
        let first = ChallengeServer::start(move |seen, _| match &seen.authorization {
            Some(_) => format!("302 Go\r\nLocation: {to}"),
            None => challenge("n", ""),
        });
        let mut options = me(AllowedAuthSchemes::DIGEST);
        let got = driver.get(&Client::new(), &first.url("/"), &options);
        assert_eq!((got.exit, got.status), (22, 401), "{driver:?}");
        let log = second.take();
        assert!(log.len() == 1 && log[0].authorization.is_none(), "{driver:?}: {log:?}");

        options.redirects.location_trusted = true;
        assert_eq!(driver.get(&Client::new(), &first.url("/"), &options).ok(), b"ok\n", "{driver:?}");
        assert!(second.take().last().unwrap().authorization.is_some());

        // The same server under two host names.
        let text = "machine localhost login you password theirs\nmachine 127.0.0.1 login me password secret";
        let auth = AuthOptions { netrc: NetrcFileUse::Required(text.as_bytes().into()), ..AuthOptions::default() };
        let options = RequestOptions { auth, ..following() };
        let got = driver.get(&Client::new(), &first.url("/").replace("127.0.0.1", "localhost"), &options);
        assert_eq!(got.ok(), b"ok\n", "{driver:?} {}", got.message);
        let (yours, mine) = (first.take().pop().unwrap().authorization, second.take().pop().unwrap().authorization);
        assert_eq!(yours.as_deref(), Some("Basic eW91OnRoZWlycw=="));
        assert_eq!(mine.as_deref(), Some("Basic bWU6c2VjcmV0"));
    }
}
