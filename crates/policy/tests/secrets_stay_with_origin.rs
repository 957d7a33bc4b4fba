//! Model test: whatever the servers answer, only the first origin receives the user's secrets.
//!
//! The model itself determines the peer of each request. It uses neither `Target` nor `Origin`: a
//! parser that confuses two hosts would otherwise deceive both the client and the model. This file
//! tests fields and userinfo over chains of redirects. `secrets_model` tests credentials of all
//! sources, cookies and proxies.

mod common;
mod secrets_model;

use haul_policy::Target;
use haul_policy::redirect::{RedirectRules, RedirectedRequest, SecretHandling, redirected_request};
use haul_policy::secret_fields::fields_to_send;
use proptest::collection::vec;
use proptest::prelude::*;

/// A peer in the model: the scheme, the host and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PeerOrigin {
    tls: bool,
    host: usize,
    port: u16,
}

/// The spellings of each host. All names in a row mean the same host.
const HOSTS: [[&str; 3]; 4] = [
    ["a.example", "A.EXAMPLE", "%61.example"],
    ["b.example", "b.Example", "b%2eexample"],
    ["127.0.0.1", "0x7f.1", "2130706433"],
    ["[::1]", "[0:0::1]", "[0000::0001]"],
];

#[derive(Clone, Debug)]
struct ChainStep {
    peer: PeerOrigin,
    spelling: usize,
    form: UrlReferenceForm,
    status: u16,
}

#[derive(Clone, Copy, Debug)]
enum UrlReferenceForm {
    Absolute,
    /// The Location is a URL with a user and password that the server chose.
    WithUserinfo,
    /// The Location is `//host/`: the scheme stays the same.
    SchemeRelative,
    Path,
    Query,
    Empty,
}

fn peers() -> impl Strategy<Value = PeerOrigin> {
    (any::<bool>(), 0..HOSTS.len(), prop_oneof![Just(80), Just(443), Just(8080)])
        .prop_map(|(tls, host, port)| PeerOrigin { tls, host, port })
}

fn steps() -> impl Strategy<Value = Vec<ChainStep>> {
    let form = prop_oneof![
        4 => Just(UrlReferenceForm::Absolute), 2 => Just(UrlReferenceForm::WithUserinfo), 2 => Just(UrlReferenceForm::SchemeRelative),
        1 => Just(UrlReferenceForm::Path), 1 => Just(UrlReferenceForm::Query), 1 => Just(UrlReferenceForm::Empty),
    ];
    let status = prop_oneof![Just(300u16), Just(301), Just(302), Just(303), Just(307), Just(308)];
    let step = (peers(), 0..3usize, form, status).prop_map(|(peer, spelling, form, status)| ChainStep {
        peer,
        spelling,
        form,
        status,
    });
    vec(step, 1..7)
}

impl PeerOrigin {
    fn url(self, userinfo: &str, spelling: usize) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}:{}", self.reference(userinfo, spelling))
    }

    fn reference(self, userinfo: &str, spelling: usize) -> String {
        let default = if self.tls { 443 } else { 80 };
        let host = HOSTS[self.host][spelling];
        // The default port is left out by one spelling.
        if self.port == default && spelling == 0 {
            format!("//{userinfo}{host}/p")
        } else {
            format!("//{userinfo}{host}:{}/p", self.port)
        }
    }
}

impl ChainStep {
    /// Returns the Location, and the peer that a correct client contacts next.
    fn location(&self, from: PeerOrigin) -> (String, PeerOrigin) {
        match self.form {
            UrlReferenceForm::Absolute => (self.peer.url("", self.spelling), self.peer),
            UrlReferenceForm::WithUserinfo => (self.peer.url("mallory:evil@", self.spelling), self.peer),
            UrlReferenceForm::SchemeRelative => {
                let peer = PeerOrigin { tls: from.tls, ..self.peer };
                (peer.reference("", self.spelling), peer)
            }
            UrlReferenceForm::Path => ("/q/./r".to_owned(), from),
            UrlReferenceForm::Query => ("?x=//evil.example/".to_owned(), from),
            UrlReferenceForm::Empty => ("#f".to_owned(), from),
        }
    }
}

const SECRETS: [&str; 4] = ["Bearer t0ken", "sid=1", "k3y", "alice:pw"];

/// Returns all secrets in the request to `target`: the user's fields, and the userinfo of the URL.
fn sent(fields: &[(String, Vec<u8>)], secrets: SecretHandling, target: &Target) -> Vec<String> {
    let fields = fields_to_send(fields, secrets).map(|(_, value)| String::from_utf8(value.clone()).unwrap());
    let userinfo = target.userinfo().map(|(user, password)| format!("{user}:{password}"));
    fields.chain(userinfo).filter(|value| value != "plain").collect()
}

fn user_fields() -> Vec<(String, Vec<u8>)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    vec![
        field("authorization", SECRETS[0]),
        field("Accept", "plain"),
        field("Cookie", SECRETS[1]),
        field("X-API-Key", SECRETS[2]),
    ]
}

/// Follows a chain of redirects. Calls `check` with each redirected request, the secrets that it
/// contains, and its peer.
fn run(
    rules: &RedirectRules,
    first: PeerOrigin,
    steps: &[ChainStep],
    mut check: impl FnMut(&RedirectedRequest, &[String], PeerOrigin) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let fields = user_fields();
    let mut peer = first;
    let mut target = Target::parse(&first.url("alice:pw@", 0)).unwrap();
    let origin = target.origin();
    prop_assert_eq!(sent(&fields, SecretHandling::Keep, &target).len(), SECRETS.len());
    for (hops, step) in steps.iter().enumerate() {
        let (location, next) = step.location(peer);
        let hop =
            redirected_request(rules, hops as u32, step.status, Some(location.as_bytes()), "GET", &target, &origin);
        let hop = hop.map_err(|e| TestCaseError::fail(format!("{location}: {e}")))?.expect("followed");
        check(&hop, &sent(&fields, hop.secrets, &hop.target), next)?;
        prop_assert_eq!((hop.target.scheme().as_str() == "https", hop.target.port()), (next.tls, next.port));
        peer = next;
        target = hop.target;
    }
    Ok(())
}

proptest! {
    #![proptest_config(common::config(20_000))]

    #[test]
    fn field_and_url_secrets_reach_first_origin_only(first in peers(), steps in steps()) {
        run(&RedirectRules::default(), first, &steps, |hop, sent, peer| {
            prop_assert_eq!(hop.same_origin, peer == first);
            if peer == first {
                prop_assert!(sent.iter().any(|secret| secret == SECRETS[0]), "the first origin goes without");
            } else {
                prop_assert!(sent.is_empty(), "{peer:?} got {sent:?}, which are {first:?}'s");
            }
            Ok(())
        })?;
    }

    #[test]
    fn location_trusted_never_sends_secrets_unencrypted(first in peers(), steps in steps()) {
        let rules = RedirectRules { location_trusted: true, ..RedirectRules::default() };
        run(&rules, first, &steps, |hop, sent, peer| {
            prop_assert_eq!(hop.same_origin, peer == first);
            if first.tls && !peer.tls {
                prop_assert!(sent.is_empty(), "{peer:?} got {sent:?} in the clear");
            }
            // The URL's own user was given for one place, whatever is trusted.
            if peer != first {
                prop_assert!(!sent.iter().any(|secret| secret == SECRETS[3]));
            }
            Ok(())
        })?;
    }
}

#[test]
fn later_redirect_does_not_restore_dropped_secrets() {
    // a -> b -> b -> a
    let first = Target::parse("https://alice:pw@a.example/").unwrap();
    let rules = RedirectRules::default();
    let mut at = first.clone();
    let mut seen = Vec::new();
    for location in ["https://b.example/", "/again", "https://b.example/x", "https://a.example/home"] {
        let hop = redirected_request(&rules, 0, 302, Some(location.as_bytes()), "GET", &at, &first.origin())
            .unwrap()
            .unwrap();
        seen.push(hop.secrets);
        at = hop.target;
    }
    assert_eq!(seen, [SecretHandling::Drop, SecretHandling::Drop, SecretHandling::Drop, SecretHandling::Keep]);
}
