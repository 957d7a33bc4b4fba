//! Follows random chains of redirects with secrets over real connections. The logs of the servers
//! must show each secret at the first origin and at no other.

use crate::common;

use std::sync::Arc;

use common::{DRIVERS, following, one_thread, run};
use haul::extraction::ExtractRegexes;
use haul::fleet::FleetStage;
use haul::state::auth::{AuthOptions, NetrcFileUse};
use haul::state::cookie_jar::SharedCookieJar;
use haul::{Client, RequestOptions, Target};
use haul_policy::url_template::UrlTemplate;
use testkit::origin::{LoggedRequest, Origin};
use testkit::rng::Rng;

const CHAINS: u64 = 400;

/// The types of secrets that a test adds to a request, named after the part of the request that
/// contains them.
const SECRETS: [&str; 5] = ["authorization", "userinfo", "cookie", "field", "own-authorization"];

/// The test servers. Each serves http on one port and https on another, so each is two origins.
struct HttpAndHttpsOrigins {
    origins: Vec<Origin>,
}

/// An origin: the index of the server, and true for the server's TLS port.
type OriginId = (usize, bool);

impl HttpAndHttpsOrigins {
    fn new() -> Self {
        Self { origins: (0..3).map(|_| Origin::builder().start().unwrap()).collect() }
    }

    fn url(&self, (number, tls): OriginId, path: &str) -> String {
        if tls { self.origins[number].https_url(path) } else { self.origins[number].url(path) }
    }

    fn log(&self) -> Vec<(OriginId, LoggedRequest)> {
        let log = |number: usize| self.origins[number].log().into_iter().map(move |seen| ((number, seen.tls), seen));
        (0..self.origins.len()).flat_map(log).collect()
    }

    fn forget(&self) {
        self.origins.iter().for_each(Origin::forget);
    }

    /// Returns a URL from which redirects lead through the origins `places` in order.
    fn chain(&self, rng: &mut Rng, places: &[OriginId]) -> String {
        let mut url = self.url(*places.last().unwrap(), "/echo");
        for pair in places.windows(2).rev() {
            let status = [301, 302, 303, 307, 308][rng.below(5) as usize];
            // A redirect to the same origin may be relative; userinfo in a Location must not
            // restore a secret.
            let to = match rng.below(4) {
                0 if pair[0] == pair[1] => url
                    .split_once("://")
                    .unwrap()
                    .1
                    .split_once('/')
                    .map_or(String::new(), |(_, path)| format!("/{path}")),
                1 => url.replacen("://", "://page:chosen@", 1),
                _ => url.clone(),
            };
            url = self.url(pair[0], &format!("/redirect/{status}?to={}", escaped(&to)));
        }
        url
    }
}

/// Escapes the percent signs of a URL, so that it can be nested in the query of another URL.
fn escaped(url: &str) -> String {
    url.replace('%', "%25")
}

fn place(rng: &mut Rng) -> OriginId {
    (rng.below(3) as usize, rng.below(3) == 0)
}

/// Adds a secret of the type `secret`, with the text `mark`, to the options or to the URL. Returns
/// the URL.
fn with_secret(secret: &str, mark: &str, url: &str, options: &mut RequestOptions) -> String {
    match secret {
        "authorization" => options.authorization = Some(format!("Bearer {mark}").into_bytes()),
        "userinfo" => return url.replacen("://", &format!("://user:{mark}@"), 1),
        "cookie" => options.cookie = Some(format!("session={mark}").into_bytes()),
        "field" => options.fields.push(("x-Api-Key".into(), mark.into())),
        "own-authorization" => options.fields.push(("authorization".into(), format!("Token {mark}").into_bytes())),
        other => unreachable!("{other}"),
    }
    url.to_owned()
}

/// Returns true if a request contains the secret text `mark`, plain or in base64.
fn carries(request: &LoggedRequest, mark: &str) -> bool {
    let coded = haul::request::basic_authorization(b"user", mark.as_bytes());
    let coded = String::from_utf8(coded).unwrap();
    let everywhere = format!("{} {:?} {}", request.target, request.headers, String::from_utf8_lossy(&request.body));
    everywhere.contains(mark) || everywhere.contains(coded.trim_start_matches("Basic "))
}

fn options_for(world: &HttpAndHttpsOrigins) -> (RequestOptions, tempfile::NamedTempFile) {
    let all: String = world.origins.iter().map(Origin::ca_pem).collect();
    let (trusting, file) = common::trusting_ca(&all);
    (RequestOptions { tls: trusting.tls, ..following() }, file)
}

#[test]
fn secret_stays_with_the_first_origin() {
    let world = HttpAndHttpsOrigins::new();
    let (base, _ca) = options_for(&world);
    let clients = DRIVERS.map(|_| Client::new());
    let (mut strangers, mut returns) = (0, 0);
    for seed in 0..CHAINS {
        world.forget();
        let mut rng = Rng::new(seed);
        let places: Vec<OriginId> = (0..2 + rng.below(5)).map(|_| place(&mut rng)).collect();
        let secret = SECRETS[(seed % 5) as usize];
        let mark = format!("s3cret{seed}");
        let mut options = base.clone();
        let url = with_secret(secret, &mark, &world.chain(&mut rng, &places), &mut options);
        if rng.below(3) == 0 {
            options.method = "POST".into();
            options.body = Some(b"content".as_slice().into());
        }
        let which = (seed % 2) as usize;
        let got = DRIVERS[which].get(&clients[which], &url, &options);
        assert_eq!((got.exit, got.status), (0, 200), "seed {seed}: {} {}", got.url, got.message);

        let log = world.log();
        assert_eq!(log.len(), places.len(), "seed {seed}");
        for (place, request) in &log {
            let expected = *place == places[0];
            strangers += u32::from(!expected);
            assert_eq!(
                carries(request, &mark),
                expected,
                "seed {seed}, {secret}: first {:?}, seen by {place:?}: {request:?}",
                places[0]
            );
        }
        returns += u32::from(places.iter().skip(1).any(|place| *place == places[0]));
    }
    assert!(strangers > 300 && returns > 50, "the chains are no test: {strangers} strangers, {returns} returns");
}

#[test]
fn shared_connection_carries_no_earlier_secret() {
    // Requests with and without a secret share connections: a secret belongs to its request only.
    let world = HttpAndHttpsOrigins::new();
    let (base, _ca) = options_for(&world);
    let client = Client::new();
    for seed in 0..60 {
        world.forget();
        let mut rng = Rng::new(1000 + seed);
        let place = place(&mut rng);
        let mut options = base.clone();
        let url = with_secret(SECRETS[(seed % 5) as usize], "s3cret", &world.url(place, "/echo"), &mut options);
        let driver = DRIVERS[(seed % 2) as usize];
        assert_eq!(driver.get(&client, &url, &options).exit, 0);
        assert_eq!(driver.get(&client, &world.url(place, "/echo"), &base).exit, 0);
        let carried: Vec<_> = world.log().iter().map(|(_, request)| carries(request, "s3cret")).collect();
        assert_eq!(carried, [true, false], "seed {seed}");
    }
}

#[test]
fn custom_host_field_stays_with_first_origin() {
    let world = HttpAndHttpsOrigins::new();
    let (mut options, _ca) = options_for(&world);
    options.fields.push(("Host".into(), b"virtual.test".to_vec()));
    for driver in DRIVERS {
        world.forget();
        let url = world.chain(&mut Rng::new(7), &[(0, false), (1, false), (0, false)]);
        assert_eq!(driver.get(&Client::new(), &url, &options).exit, 0);
        for ((number, _), request) in world.log() {
            assert_eq!(request.header("host") == Some("virtual.test"), number == 0, "{driver:?} {request:?}");
        }
    }
}

#[test]
fn links_in_pages_get_no_secret() {
    let world = HttpAndHttpsOrigins::new();
    let (base, _ca) = options_for(&world);
    let mut strangers = 0;
    for seed in 0..CHAINS / 4 {
        world.forget();
        let mut rng = Rng::new(seed);
        let (first, literal) = (place(&mut rng), place(&mut rng));
        let mark = format!("s3cret{seed}");
        let mut options = base.clone();
        let secret = ["authorization", "cookie", "field", "own-authorization"][(seed % 4) as usize];
        with_secret(secret, &mark, "", &mut options);
        let options = Arc::new(options);
        // The first page echoes its request body: links of a page, some of them redirect chains.
        let is_literal = rng.below(2) == 0;
        let mut page = String::new();
        for _ in 0..3 {
            let places: Vec<OriginId> = (0..1 + rng.below(3)).map(|_| place(&mut rng)).collect();
            page += &if is_literal {
                // A template encodes the marks of a query, so this page does not exist, but is
                // requested.
                let url = world.chain(&mut rng, &[&[literal], &places[..]].concat());
                url.replace(&world.url(literal, "/"), "<") + ">"
            } else {
                format!("<{}>", world.chain(&mut rng, &places))
            };
        }
        let page_options = RequestOptions {
            method: "POST".into(),
            body: Some(page.into_bytes().into()),
            ..RequestOptions::clone(&options)
        };
        let template = if is_literal { world.url(literal, "/{}") } else { "{}".into() };
        let stages = vec![
            FleetStage {
                options: Arc::new(page_options),
                // The echo's JSON contains the page unchanged, because nothing in it needs
                // escaping.
                extract: Some(ExtractRegexes::new("<([^>]+)>").unwrap().into()),
                ..FleetStage::default()
            },
            FleetStage {
                options,
                template: Some(Arc::new(UrlTemplate::parse(&template).unwrap())),
                ..FleetStage::default()
            },
        ];
        let done = run(&Client::new(), stages, one_thread(), [world.url(first, "/echo")]);
        assert_eq!(done.reports.len() as u64, done.summary().succeeded + done.summary().failed);
        let log = world.log();
        assert!(log.len() >= 2, "seed {seed}: {log:?}");
        for (place, request) in &log {
            let trusted = *place == first || (is_literal && *place == literal);
            strangers += u32::from(!trusted);
            let got = carries(request, &mark);
            assert!(
                trusted || !got,
                "seed {seed}, {secret}: {first:?} {literal:?} {is_literal}: {place:?} {request:?}"
            );
            // The first page and all URLs of a literal template must receive the secret.
            let needs = request.method == "POST" || (is_literal && *place == literal && request.target != "/echo");
            assert!(!needs || got, "seed {seed}, {secret}: {first:?} {literal:?} {is_literal}: {place:?} {request:?}");
        }
    }
    assert!(strangers > 50, "{strangers}");
}

/// Returns the secret that the test stores, in the cookie jar and in the netrc text, for the host
/// of all https origins (if `tls` is true) or for the host of all http origins.
fn mark_of(tls: bool) -> &'static str {
    if tls { "theirs-localhost" } else { "theirs-127" }
}

#[test]
fn cookies_and_netrc_go_only_to_their_hosts() {
    let world = HttpAndHttpsOrigins::new();
    let (base, _ca) = options_for(&world);
    let clients = DRIVERS.map(|_| Client::new());
    let (mut withheld, mut moved) = (0, 0);
    for seed in 0..CHAINS {
        world.forget();
        let mut rng = Rng::new(5000 + seed);
        let places: Vec<OriginId> = (0..2 + rng.below(5)).map(|_| place(&mut rng)).collect();
        let jar = SharedCookieJar::new();
        let mut netrc = String::new();
        for (host, tls) in [("127.0.0.1", false), ("localhost", true)] {
            let site = Target::parse(&format!("http://{host}/")).unwrap();
            jar.store_fields(&site, [format!("sid=cookie-{}", mark_of(tls)).as_bytes()]);
            netrc.push_str(&format!("machine {host} login netrc password {}\n", mark_of(tls)));
        }
        let auth = AuthOptions { netrc: NetrcFileUse::Required(netrc.as_bytes().into()), ..AuthOptions::default() };
        let options = RequestOptions { auth, jar: Some(jar), ..base.clone() };
        let url = world.chain(&mut rng, &places);
        let which = (seed % 2) as usize;
        let got = DRIVERS[which].get(&clients[which], &url, &options);
        assert_eq!((got.exit, got.status), (0, 200), "seed {seed}: {} {}", got.url, got.message);

        let mut log = world.log();
        assert_eq!(log.len(), places.len(), "seed {seed}");
        for (at, place) in places.iter().enumerate() {
            let found = log.iter().position(|(other, _)| other == place).unwrap();
            let (_, request) = log.remove(found);
            let expected = format!("sid=cookie-{}", mark_of(place.1));
            assert_eq!(request.header("cookie"), Some(expected.as_str()), "seed {seed}, {at}");
            // Nothing is sent from https to http, except back to the first origin.
            let was_private = at > 0 && (places[at - 1].1 || places[0].1);
            let downgraded = was_private && !place.1 && *place != places[0];
            let known = haul::request::basic_authorization(b"netrc", mark_of(place.1).as_bytes());
            let known = (!downgraded).then(|| String::from_utf8(known).unwrap());
            assert_eq!(request.header("authorization"), known.as_deref(), "seed {seed}, {at}: {places:?}");
            withheld += u32::from(downgraded);
            moved += u32::from(*place != places[0]);
        }
    }
    assert!(withheld > 50 && moved > 300, "the chains are no test: {withheld} withheld, {moved} moved");
}
