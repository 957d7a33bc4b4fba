//! Tests of Negotiate with a scripted Kerberos library. `scripts/negotiate-suite.sh` uses a real
//! library.

use std::sync::Arc;

use haul::net::proxy::{ProxyAuthScheme, SocksGssapi};
use haul::state::auth::{
    AllowedAuthSchemes, AuthOptions, Credentials, Delegation, NegotiateError, NegotiateOptions, SecurityContext,
    SecurityLibrary,
};
use haul::{Client, ErrorKind, RequestOptions};
use testkit::h1_peer::{H1Peer, ScriptStep};

use super::{ChallengeServer, RequestRecord};
use crate::common::{DRIVERS, following, with_proxy};
use crate::support::proxy::adjusted;

/// Authorization values of the client and of the server, with the tokens `one`, `two` and `proof`
/// in base64.
const ONE: &str = "Negotiate b25l";
const TWO: &str = "Negotiate dHdv";
const PROOF: &str = "Negotiate cHJvb2Y=";

/// A Kerberos library for a user with or without a ticket.
struct ScriptedLibrary {
    has_ticket: bool,
}

#[derive(Default)]
struct ScriptedSecurityContext {
    rounds: u32,
    is_established: bool,
}

impl SecurityLibrary for ScriptedLibrary {
    fn context(&self, service: &str, host: &str, _: Delegation) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        assert_eq!((service, host), ("HTTP", "127.0.0.1"));
        match self.has_ticket {
            true => Ok(Box::new(ScriptedSecurityContext::default())),
            false => Err(NegotiateError::Refused("no ticket".into())),
        }
    }

    fn socks_context(
        &self,
        service: &str,
        host: &str,
        _: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        self.context(service, host, Delegation::None)
    }
}

impl SecurityContext for ScriptedSecurityContext {
    fn step(&mut self, token: Option<&[u8]>) -> Result<Vec<u8>, NegotiateError> {
        self.rounds += 1;
        match (self.rounds, token) {
            (1, None) => Ok(b"one".to_vec()),
            (2, Some(b"more")) => Ok(b"two".to_vec()),
            (_, Some(b"proof")) => {
                self.is_established = true;
                Ok(Vec::new())
            }
            _ => Err(NegotiateError::Refused("the token is forged".into())),
        }
    }

    fn is_established(&self) -> bool {
        self.is_established
    }

    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        assert!(self.is_established);
        Ok([b"w", message].concat())
    }

    fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        let message = wrapped.strip_prefix(b"w").ok_or(NegotiateError::Refused("it was changed".into()))?;
        Ok(message.to_vec())
    }
}

fn negotiating(allowed: AllowedAuthSchemes) -> RequestOptions {
    let negotiate = NegotiateOptions::with_library(Arc::new(ScriptedLibrary { has_ticket: true }));
    RequestOptions { auth: AuthOptions { negotiate, allowed, ..AuthOptions::default() }, ..following() }
}

fn sent(log: &[RequestRecord]) -> Vec<(usize, Option<&str>)> {
    log.iter().map(|seen| (seen.connection, seen.authorization.as_deref())).collect()
}

#[test]
fn negotiate_token_is_sent_immediately_with_the_content() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|_, _| format!("200 OK\r\nWWW-Authenticate: {PROOF}"));
        let options = RequestOptions {
            method: "POST".into(),
            body: Some("a=1".into()),
            ..negotiating(AllowedAuthSchemes::NEGOTIATE)
        };
        assert_eq!(driver.get(&Client::new(), &server.url("/"), &options).ok(), b"ok\n", "{driver:?}");
        let log = server.take();
        assert_eq!(sent(&log), [(0, Some(ONE))]);
        assert_eq!(log[0].content, b"a=1");
    }
}

#[test]
fn later_negotiate_tokens_use_the_same_connection() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, _| match seen.authorization.as_deref() {
            Some(TWO) => format!("200 OK\r\nWWW-Authenticate: {PROOF}"),
            Some(ONE) => "401 No\r\nWWW-Authenticate: Negotiate bW9yZQ==".into(),
            _ => "401 No\r\nWWW-Authenticate: Negotiate, Basic realm=\"x\"".into(),
        });
        let any = AllowedAuthSchemes { negotiate: true, ..AllowedAuthSchemes::ANY };
        let got = driver.get(&Client::new(), &server.url("/"), &negotiating(any));
        assert_eq!(got.ok(), b"ok\n", "{driver:?} {}", got.message);
        assert_eq!(sent(&server.take()), [(0, None), (1, Some(ONE)), (1, Some(TWO))]);
    }
}

#[test]
fn forged_negotiate_proof_is_an_error() {
    for driver in DRIVERS {
        for status in ["200 OK", "404 Not Found", "302 Go\r\nLocation: /other"] {
            let server =
                ChallengeServer::start(move |_, _| format!("{status}\r\nWWW-Authenticate: Negotiate Zm9yZ2Vk"));
            let got = driver.get(&Client::new(), &server.url("/"), &negotiating(AllowedAuthSchemes::NEGOTIATE));
            assert_eq!(got.kind, Some(ErrorKind::Auth), "{driver:?} {status}");
            assert!(got.message.contains("does not prove its identity"), "{}", got.message);
            assert_eq!(server.take().len(), 1, "no redirect is followed");
        }
    }
}

#[test]
fn refused_negotiate_token_is_not_sent_again() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|_, _| "401 No\r\nWWW-Authenticate: Negotiate".into());
        let got = driver.get(&Client::new(), &server.url("/"), &negotiating(AllowedAuthSchemes::NEGOTIATE));
        assert_eq!(got.status, 401, "{driver:?}");
        assert_eq!(sent(&server.take()), [(0, Some(ONE))]);
    }
}

#[test]
fn another_scheme_is_used_without_a_kerberos_ticket() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, _| match seen.authorization.as_deref() {
            Some("Basic bWU6c2VjcmV0") => "200 OK".into(),
            _ => "401 No\r\nWWW-Authenticate: Negotiate\r\nWWW-Authenticate: Basic realm=\"x\"".into(),
        });
        let negotiate = NegotiateOptions::with_library(Arc::new(ScriptedLibrary { has_ticket: false }));
        let user = AuthOptions::user(Credentials::new("me", "secret").unwrap());
        let any = AllowedAuthSchemes { negotiate: true, ..AllowedAuthSchemes::ANY };
        let options =
            RequestOptions { auth: AuthOptions { negotiate: negotiate.clone(), allowed: any, ..user }, ..following() };
        assert_eq!(driver.get(&Client::new(), &server.url("/"), &options).ok(), b"ok\n", "{driver:?}");

        let auth = AuthOptions { negotiate, allowed: AllowedAuthSchemes::NEGOTIATE, ..AuthOptions::default() };
        server.take();
        let got = driver.get(&Client::new(), &server.url("/"), &RequestOptions { auth, ..following() });
        assert_eq!(got.kind, Some(ErrorKind::Auth), "{driver:?}");
        assert!(got.message.contains("no ticket") && server.take().is_empty(), "{}", got.message);
    }
}

#[test]
fn negotiated_connection_is_not_shared_between_users() {
    for driver in DRIVERS {
        let server = ChallengeServer::start(|_, _| "200 OK".into());
        let (one, other) = (negotiating(AllowedAuthSchemes::NEGOTIATE), negotiating(AllowedAuthSchemes::NEGOTIATE));
        let client = Client::new();
        for options in [&one, &other, &following(), &one, &other, &one.clone()] {
            assert_eq!(driver.get(&client, &server.url("/"), options).ok(), b"ok\n", "{driver:?}");
        }
        let log = server.take();
        let connections: Vec<_> = log.iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 1, 2, 0, 1, 0], "{driver:?}");
    }
}

#[test]
fn requests_share_a_connection_until_negotiate_is_chosen() {
    let any = AllowedAuthSchemes { negotiate: true, ..AllowedAuthSchemes::ANY };
    for driver in DRIVERS {
        let server = ChallengeServer::start(|seen, _| match (&*seen.target, seen.authorization.as_deref()) {
            ("/closed", None) => "401 No\r\nWWW-Authenticate: Negotiate".into(),
            _ => "200 OK".into(),
        });
        let client = Client::new();
        let (one, other) = (negotiating(any), negotiating(any));
        let requests = [
            ("/", &following()),
            ("/", &one),
            ("/", &other),
            ("/closed", &one),
            ("/", &following()),
            ("/closed", &one),
        ];
        for (path, options) in requests {
            assert_eq!(driver.get(&client, &server.url(path), options).ok(), b"ok\n", "{driver:?} {path}");
        }
        let (open, token) = ((0, None), (1, Some(ONE)));
        assert_eq!(sent(&server.take()), [open, open, open, open, token, open, open, token], "{driver:?}");
    }
}

#[test]
fn redirect_to_another_origin_gets_no_negotiate_token() {
    for driver in DRIVERS {
        let second = ChallengeServer::start(|_, _| "401 No\r\nWWW-Authenticate: Negotiate".into());
        let to = second.url("/");
        let first = ChallengeServer::start(move |_, _| format!("302 Go\r\nLocation: {to}"));
        let got = driver.get(&Client::new(), &first.url("/"), &negotiating(AllowedAuthSchemes::NEGOTIATE));
        assert_eq!(got.status, 401, "{driver:?}");
        assert_eq!((sent(&first.take()).len(), sent(&second.take())), (1, vec![(0, None)]));
    }
}

#[test]
fn proxy_gets_the_strongest_scheme_it_offers() {
    let asks = "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=\"x\"\r\nProxy-Authenticate: \
                Negotiate\r\nContent-Length: 0\r\n\r\n";
    for driver in DRIVERS {
        for (tunnel, has_ticket) in [(false, true), (true, true), (false, false), (true, false)] {
            // Without a ticket, the request is sent once more without credentials.
            let challenges = if has_ticket { 1 } else { 2 };
            let challenge = [ScriptStep::ReadHead, ScriptStep::send(asks)];
            let mut steps: Vec<_> = std::iter::repeat_n(challenge, challenges).flatten().collect();
            if tunnel {
                steps.extend([ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\n\r\n")]);
            }
            steps.extend([ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]);
            steps.push(ScriptStep::Close);
            let peer = H1Peer::start(vec![steps]);
            let negotiate = NegotiateOptions::with_library(Arc::new(ScriptedLibrary { has_ticket }));
            let options = adjusted(with_proxy(&format!("http://{}", peer.addr()), &following()), |to| {
                (to.auth, to.tunnel, to.negotiate) = (ProxyAuthScheme::AnyOrNegotiate, tunnel, negotiate);
                to.credentials = Some(Credentials::new("me", "secret").unwrap());
            });
            let got = driver.get(&Client::new(), "http://example.test/", &options);
            assert_eq!(got.ok(), b"ok", "{driver:?} tunnel {tunnel}, ticket {has_ticket}: {}", got.message);
            let received = peer.received(0);
            let sent: Vec<_> = std::str::from_utf8(&received)
                .unwrap()
                .lines()
                .filter_map(|line| line.strip_prefix("Proxy-Authorization: "))
                .collect();
            assert_eq!(sent, [if has_ticket { ONE } else { "Basic bWU6c2VjcmV0" }], "{driver:?} tunnel {tunnel}");
        }
    }
}

/// Returns the script of a SOCKS 5 proxy that chooses GSS-API. `level` is its answer about the
/// level of protection, and `length` is the length in bytes of the client's message about the
/// level.
fn socks_steps(level: &[u8], length: usize) -> Vec<ScriptStep> {
    vec![
        ScriptStep::ReadBytes(4),
        ScriptStep::send([5, 1]),
        ScriptStep::ReadBytes(4 + 3),
        ScriptStep::send(b"\x01\x01\0\x05proof"),
        ScriptStep::ReadBytes(4 + length),
        ScriptStep::send(level),
        ScriptStep::ReadBytes(4 + 1 + 12 + 2),
        ScriptStep::send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ScriptStep::Close,
    ]
}

#[test]
fn socks_gssapi_negotiates_the_level_of_protection() {
    for driver in DRIVERS {
        for (nec, level, sent, error) in [
            (false, &b"\x01\x02\0\x02w\0"[..], &b"\x01\x02\0\x02w\0"[..], None),
            (true, b"\x01\x02\0\x01\0", b"\x01\x02\0\x01\0", None),
            (false, b"\x01\x02\0\x02w\x02", b"\x01\x02\0\x02w\0", Some("gssapi.enctype")),
            (false, b"\x01\x02\0\x01\0", b"\x01\x02\0\x02w\0", Some("it was changed")),
            (false, b"\x01\xff", b"\x01\x02\0\x02w\0", Some("refused the Kerberos ticket")),
        ] {
            let peer = H1Peer::start(vec![socks_steps(level, sent.len() - 4)]);
            let negotiate = NegotiateOptions::with_library(Arc::new(ScriptedLibrary { has_ticket: true }));
            let options = adjusted(with_proxy(&format!("socks5h://{}", peer.addr()), &following()), |to| {
                to.socks_gssapi = Some(SocksGssapi { negotiate, nec });
            });
            let got = driver.get(&Client::new(), "http://example.test/", &options);
            match error {
                None => assert_eq!(got.ok(), b"ok", "{driver:?} {level:?}: {}", got.message),
                Some(text) => {
                    assert_eq!((got.kind, got.exit), (Some(ErrorKind::Proxy), 97), "{driver:?} {}", got.message);
                    assert!(got.message.contains(text), "{}", got.message);
                }
            }
            let begins = [&[5, 2, 0, 1, 1, 1, 0, 3][..], b"one", sent].concat();
            assert!(peer.received(0).starts_with(&begins), "{driver:?} {:?}", peer.received(0));
        }
    }
}
