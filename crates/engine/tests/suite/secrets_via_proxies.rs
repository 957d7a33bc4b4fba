//! Tests of secrets on every route: direct, forwarded, tunnelled, with TLS to the proxy, and
//! through SOCKS 4 to 5h, with HTTP/1.1 and HTTP/2. Random sequences of redirects run over real
//! connections of one client. Servers and proxies record what they receive, and the seed determines
//! what each of them may receive.

use crate::common;
use crate::support::proxy;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{DRIVERS, following, http2_origin, trusting_ca};
use haul::net::dns::AddressFamily;
use haul::net::proxy::ProxyOptions;
use haul::state::auth::{AuthOptions, Credentials, NetrcFileUse};
use haul::state::cookie_jar::SharedCookieJar;
use haul::{Client, RequestOptions, Target};
use haul_policy::proxy::ProxyEnvironment;
use proxy::{TestProxy, TestProxyBehavior};
use testkit::origin::{LoggedRequest, Origin};
use testkit::rng::Rng;
use testkit::test_certificates::TestCertificates;

const SEQUENCES: u64 = 1_280;

/// The routes to an origin. Each has the scheme of the proxy (empty for a direct connection), and
/// true if an HTTP proxy tunnels requests for http URLs instead of forwarding them.
const WAYS: [(&str, bool); 8] = [
    ("", false),
    ("http", false),
    ("http", true),
    ("https", false),
    ("socks4", false),
    ("socks4a", false),
    ("socks5", false),
    ("socks5h", false),
];

/// The types of secrets with which a sequence of redirects begins. The text of each secret contains
/// a mark that is unique to the sequence.
const SECRETS: [&str; 5] = ["user", "userinfo", "bearer", "field", "netrc"];

/// The user names and passwords of the two proxies. Each proxy has a plain and a TLS port.
const LOGINS: [(&str, &str); 2] = [("first", "proxy-one-pw"), ("second", "proxy-two-pw")];

/// An origin: the index of the server, and true for the server's TLS port.
type OriginIndexAndTls = (usize, bool);

/// The test's origins, and the proxies in front of them.
struct OriginsAndProxies {
    origins: Vec<Origin>,
    /// The proxy for http URLs and the proxy for https URLs, each as a plain and a TLS server.
    proxies: Vec<[TestProxy; 2]>,
    base: RequestOptions,
    proxy_tls: haul::net::tls::TlsOptions,
    _files: [tempfile::NamedTempFile; 2],
}

impl OriginsAndProxies {
    fn new() -> OriginsAndProxies {
        let origins: Vec<_> = (0..3).map(|_| http2_origin(100)).collect();
        let identity = TestCertificates::generate();
        let start = |login, tls| {
            TestProxy::start(TestProxyBehavior { login: Some(login), tls, ..TestProxyBehavior::default() })
        };
        let proxies = LOGINS.map(|login| [start(login, None), start(login, Some(identity.server_config(&[])))]);
        let (to_origins, file) = trusting_ca(&origins.iter().map(Origin::ca_pem).collect::<String>());
        let (to_proxies, proxy_file) = trusting_ca(identity.ca_pem());
        // SOCKS 4 supports only IPv4.
        let base = RequestOptions { tls: to_origins.tls, family: AddressFamily::V4, ..following() };
        OriginsAndProxies {
            origins,
            proxies: proxies.into(),
            base,
            proxy_tls: to_proxies.tls,
            _files: [file, proxy_file],
        }
    }

    fn url(&self, (number, tls): OriginIndexAndTls, path: &str) -> String {
        if tls { self.origins[number].https_url(path) } else { self.origins[number].url(path) }
    }

    fn chain(&self, rng: &mut Rng, places: &[OriginIndexAndTls]) -> String {
        let mut url = self.url(*places.last().unwrap(), "/echo");
        for place in places[..places.len() - 1].iter().rev() {
            let status = [301, 302, 303, 307, 308][rng.below(5) as usize];
            let to = if rng.below(3) == 0 { url.replacen("://", "://page:chosen@", 1) } else { url.clone() };
            url = self.url(*place, &format!("/redirect/{status}?to={}", to.replace('%', "%25")));
        }
        url
    }

    /// Returns the origin to which a proxy forwards a plain HTTP request. The port in `target`, the
    /// request's absolute URL, determines the origin.
    fn place_of(&self, target: &str) -> OriginIndexAndTls {
        let found = (0..self.origins.len()).find(|&number| target.starts_with(&self.origins[number].url("/")));
        (found.unwrap_or_else(|| panic!("a request for nobody: {target}")), false)
    }

    /// Returns the requests that the proxies have received since the last call, each with the
    /// number of its proxy. `seen` stores the numbers of requests returned before.
    fn received(&self, seen: &mut [[usize; 2]; 2]) -> Vec<(usize, Vec<String>)> {
        let mut all = Vec::new();
        for (number, pair) in self.proxies.iter().enumerate() {
            for (kind, proxy) in pair.iter().enumerate() {
                let told = proxy.received();
                all.push((number, told[seen[number][kind]..].to_vec()));
                seen[number][kind] = told.len();
            }
        }
        all
    }

    /// Returns the URL of proxy `number` with its user name and password. Returns `None` if
    /// `scheme` is empty.
    fn proxy_url(&self, number: usize, scheme: &str) -> Option<String> {
        let (user, password) = LOGINS[number];
        let port = self.proxies[number][usize::from(scheme == "https")].addr.port();
        (!scheme.is_empty()).then(|| format!("{scheme}://{user}:{password}@localhost:{port}"))
    }
}

/// Returns the options and the URL of the first request of a sequence of redirects. One of the two
/// contains a secret of the type `secret` with the text `mark`.
fn given(
    world: &OriginsAndProxies,
    secret: &str,
    mark: &str,
    ways: [(&str, bool); 2],
    is_h2: bool,
    url: &str,
) -> (RequestOptions, String) {
    let mut options = world.base.clone();
    let mut proxy = ProxyOptions::default();
    proxy.environment = ProxyEnvironment::from_variables(|name| match name {
        "http_proxy" => world.proxy_url(0, ways[0].0),
        "https_proxy" => world.proxy_url(1, ways[1].0),
        _ => None,
    });
    proxy.tunnel = ways[0].1;
    proxy.tls = world.proxy_tls.clone();
    options.proxy = Some(proxy);
    if is_h2 {
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Without TLS, a forwarding proxy still gets HTTP/1.1.
        options.prior_knowledge = true;
    }
    let jar = SharedCookieJar::new();
    for host in ["127.0.0.1", "localhost"] {
        let site = Target::parse(&format!("http://{host}/")).unwrap();
        jar.store_fields(&site, [format!("sid=of-{host}-{mark}").as_bytes()]);
    }
    options.jar = Some(jar);
    let mut url = url.to_owned();
    match secret {
        "user" => options.auth = AuthOptions::user(Credentials::new("user", mark).unwrap()),
        "userinfo" => url = url.replacen("://", &format!("://user:{mark}@"), 1),
        "bearer" => options.auth = AuthOptions::bearer(mark.as_bytes().to_vec()),
        "field" => options.fields.push(("X-Api-Key".into(), mark.into())),
        _ => {
            let text = format!("machine localhost login user password {mark}\n");
            options.auth =
                AuthOptions { netrc: NetrcFileUse::Required(text.as_bytes().into()), ..AuthOptions::default() };
        }
    }
    (options, url)
}

/// Returns the text, followed by the decoded form of every base64 word in it, so that Basic
/// credentials can be found in it.
fn readable(text: &str) -> String {
    let decoded = text.split_whitespace().filter_map(|word| String::from_utf8(STANDARD.decode(word).ok()?).ok());
    format!("{text} {}", decoded.collect::<Vec<_>>().join(" "))
}

fn readable_request(request: &LoggedRequest) -> String {
    let fields: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    readable(&format!("{} {}", request.target, fields.join(" ")))
}

/// Returns true if the origin `place` must receive the secret, and false if it must not. `first` is
/// the first origin of the sequence of redirects.
fn must_have(secret: &str, place: OriginIndexAndTls, first: OriginIndexAndTls) -> bool {
    match secret {
        // The entry names `localhost`, which is the host of all https origins and of no http
        // origin.
        "netrc" => place.1,
        _ => place == first,
    }
}

/// Asserts that `text`, a received request, contains exactly the secrets that the origin `place`
/// must receive.
#[track_caller]
fn check(text: &str, secret: &str, mark: &str, place: OriginIndexAndTls, first: OriginIndexAndTls, what: &str) {
    let cookies = [("of-127.0.0.1-", !place.1), ("of-localhost-", place.1)];
    for (cookie, expected) in cookies {
        assert_eq!(text.contains(&format!("{cookie}{mark}")), expected, "{what}: {cookie} at {place:?}: {text}");
    }
    let without_cookies = text.replace(&format!("1-{mark}"), "").replace(&format!("localhost-{mark}"), "");
    assert_eq!(without_cookies.contains(mark), must_have(secret, place, first), "{what}: at {place:?}: {text}");
}

#[test]
fn no_route_reveals_a_secret_to_other_hosts() {
    let world = OriginsAndProxies::new();
    let clients = DRIVERS.map(|_| Client::new());
    let mut seen = [[0; 2]; 2];
    let mut asked = BTreeMap::<_, u32>::new();
    let (mut strangers, mut proxied) = (0, 0);
    for seed in 0..SEQUENCES {
        world.origins.iter().for_each(Origin::forget);
        let mut rng = Rng::new(9_000 + seed);
        let ways = [WAYS[(seed % 8) as usize], WAYS[(seed / 8 % 8) as usize]];
        let is_h2 = seed / 64 % 2 == 1;
        let secret = SECRETS[(seed % 5) as usize];
        let mark = format!("s3cret{seed}x");
        let places: Vec<OriginIndexAndTls> =
            (0..1 + rng.below(5)).map(|_| (rng.below(3) as usize, rng.below(2) == 0)).collect();
        let (options, url) = given(&world, secret, &mark, ways, is_h2, &world.chain(&mut rng, &places));
        let which = (seed / 128 % 2) as usize;
        let what = format!("sequence {seed}: {secret}, {ways:?}, HTTP/2 {is_h2}, {places:?}, {:?}", DRIVERS[which]);
        let got = DRIVERS[which].get(&clients[which], &url, &options);
        assert_eq!((got.exit, got.status), (0, 200), "{what}: {}", got.message);

        let mut expected: Vec<OriginIndexAndTls> = places.clone();
        for (number, origin) in world.origins.iter().enumerate() {
            for request in origin.log() {
                let place = (number, request.tls);
                let at =
                    expected.iter().position(|other| *other == place).unwrap_or_else(|| panic!("{what}: {place:?}"));
                expected.remove(at);
                let text = readable_request(&request);
                check(&text, secret, &mark, place, places[0], &what);
                assert!(!text.contains("proxy-one-pw") && !text.contains("proxy-two-pw"), "{what}: {text}");
                strangers += u32::from(place != places[0]);
                // Only HTTP/2 requests have no Host field.
                let spoke_h2 = request.header("host").is_none();
                *asked.entry((ways[usize::from(place.1)], place.1, spoke_h2)).or_default() += 1;
            }
        }
        assert!(expected.is_empty(), "{what}: never asked {expected:?}");
        for (number, told) in world.received(&mut seen) {
            for message in told {
                proxied += 1;
                let text = readable(&message);
                assert!(!text.contains(LOGINS[1 - number].1), "{what}: proxy {number} got the other's: {text}");
                let target = message.split(' ').nth(1).unwrap_or_default();
                if target.starts_with("http://") {
                    assert!(number == 0 && !ways[0].1, "{what}: {text}");
                    check(&text, secret, &mark, world.place_of(target), places[0], &what);
                } else {
                    assert!(!text.contains(&mark), "{what}: a proxy that tunnels got {text}");
                }
            }
        }
    }
    assert!(strangers > 1_500 && proxied > 700, "the sequences are no test: {strangers} strangers, {proxied} proxied");
    // Every route was used for http and https with either version; forwarding proxies speak
    // HTTP/1.1.
    for way in WAYS {
        for (tls, is_h2) in [(false, false), (false, true), (true, false), (true, true)] {
            let is_forwarded = way.0.starts_with("http") && !way.1 && !tls;
            let count = asked.get(&(way, tls, is_h2)).copied().unwrap_or_default();
            assert!(if is_forwarded && is_h2 { count == 0 } else { count >= 10 }, "{way:?} {tls} {is_h2}: {count}");
        }
    }
}
