//! Tests sessions of random requests by one client, made from a seed. Some requests are abandoned.
//! However the servers treat connections, each request must get its own complete response or an
//! error, and its body must arrive complete.
//!
//! `HAUL_MODELS=1000` runs more seeds, `HAUL_MODELS=17..18` repeats the seed 17.

mod call_styles;
mod routes_to_scripted_server;
mod scripted_server;

use crate::common;
use crate::support::seeds;

use std::collections::HashMap;
use std::sync::Arc;

use call_styles::{CallStyle, PiecewiseContent, SessionRequest, SessionResponse, a_batch, run_all};
use common::{retrying, trusting_ca, with_h2_alpn, with_prior_knowledge};
use haul::{Client, Error, RequestBuilder, RequestOptions};
use routes_to_scripted_server::{DirectOrProxyRoute, RequiredProxyAuth, SessionRoute};
use scripted_server::{ConnectionEnd, ReplyScript, ScriptedFailure, ScriptedFraming, ScriptedServer};
use seeds::{each, one_of};
use testkit::byte_pattern::{self, BytePattern};
use testkit::faulty::{BodyBreak, BodyBreakOffset, BreakKind, FaultPlan, FaultyOrigin};
use testkit::origin::Origin;
use testkit::rng::Rng;

/// A random HTTP/1.1 request to [`ScriptedServer`], and the server's script for it.
#[derive(Clone)]
struct RandomHttp1Request {
    server: ScriptedServer,
    scripts: Arc<HashMap<u64, ReplyScript>>,
    number: u64,
    method: &'static str,
    sends: Option<UploadPlan>,
    way: CallStyle,
}

/// The size of a request body in bytes, and the type of its source.
#[derive(Clone, Copy, Debug)]
struct UploadPlan(usize, UploadKind);

/// The type of source that supplies a request body.
#[derive(Clone, Copy, Debug)]
enum UploadKind {
    Memory,
    Reader,
    Stream,
}

impl UploadPlan {
    fn any(rng: &mut Rng) -> Self {
        Self(
            one_of(rng, &[0, 10, 3_000, 200_000]),
            one_of(rng, &[UploadKind::Memory, UploadKind::Memory, UploadKind::Reader, UploadKind::Stream]),
        )
    }

    fn put(self, request: RequestBuilder, content: Vec<u8>) -> RequestBuilder {
        match self.1 {
            UploadKind::Memory => request.body(content),
            UploadKind::Reader => request.body_reader(PiecewiseContent::of(content), None),
            UploadKind::Stream => request.body_stream(PiecewiseContent::of(content), None),
        }
    }
}

fn a_script(rng: &mut Rng, number: u64, count: u64, ends: &[ConnectionEnd]) -> ReplyScript {
    use ScriptedFraming::{Chunked, Close, Length, NoContent, NotModified};
    let framing = one_of(rng, &[Length, Length, Length, Chunked, Chunked, Close, NoContent, NotModified]);
    let redirect = (rng.below(10) == 0 && number + 1 < count && matches!(framing, Length | Chunked))
        .then(|| (one_of(rng, &[302, 307, 308]), number + 1 + rng.below(count - number - 1)));
    let fail = one_of(
        rng,
        &[ScriptedFailure::Unread, ScriptedFailure::Unanswered, ScriptedFailure::Unavailable, ScriptedFailure::Half],
    );
    // A body that ends with the connection cannot be checked for truncation.
    let times = if fail == ScriptedFailure::Half && !matches!(framing, Length | Chunked) { 0 } else { rng.below(2) };
    ReplyScript {
        framing,
        size: one_of(rng, &[0, 1, 300, 300, 5_000, 70_000, 400_000]),
        interim: (0..rng.below(8).saturating_sub(5)).map(|_| one_of(rng, &[100, 102, 103])).collect(),
        step: one_of(rng, &[usize::MAX, usize::MAX, 100_000, 30_000, 9_999]),
        end: one_of(rng, ends),
        fail: (if rng.below(6) == 0 { times } else { 0 }, fail),
        early: rng.below(8) == 0,
        redirect,
    }
}

impl RandomHttp1Request {
    fn any(rng: &mut Rng, server: &ScriptedServer, scripts: &Arc<HashMap<u64, ReplyScript>>, number: u64) -> Self {
        let sends = (rng.below(3) == 0).then(|| UploadPlan::any(rng));
        let method = match sends {
            Some(_) => one_of(rng, &["POST", "PUT"]),
            None => one_of(rng, &["GET", "GET", "GET", "HEAD", "DELETE"]),
        };
        Self { server: server.clone(), scripts: Arc::clone(scripts), number, method, sends, way: CallStyle::any(rng) }
    }
}

impl SessionRequest for RandomHttp1Request {
    fn way(&self) -> CallStyle {
        self.way
    }

    fn request(&self, client: &Client) -> RequestBuilder {
        let bearer = self.server.route().host(self.number);
        let request = client.request(self.method, &self.server.url(self.number)).bearer(&bearer);
        let request = request.header("x-case", self.number.to_string());
        match self.sends {
            None => request,
            Some(sends) => sends.put(request, scripted_server::upload(self.number, sends.0)),
        }
    }

    fn check(&self, got: Result<SessionResponse, Error>) {
        let (mut number, mut script, mut method) = (self.number, &self.scripts[&self.number], self.method);
        let mut fails = script.fail.0 > 0;
        // A connection that closes without notice loses the next request, which is sent again only
        // if it is idempotent.
        let is_risky = self.sends.is_some() || self.method == "DELETE" || script.early;
        while let Some((status, next)) = script.redirect {
            (number, script) = (next, &self.scripts[&next]);
            fails |= script.fail.0 > 0;
            if status == 302 && method == "POST" {
                method = "GET";
            }
        }
        let route = self.server.route();
        let what = format!("{} {} {:?} {:?} {script:?} {route:?}", self.method, self.number, self.sends, self.way);
        let is_once = self.sends.is_some_and(|sends| !matches!(sends.1, UploadKind::Memory));
        // Bytes that the program has read cannot restart, and a proxy's refusal of CONNECT is
        // final.
        let breaks = route.breaks > 0
            && (route.via != DirectOrProxyRoute::Direct
                || matches!(self.way, CallStyle::Read(_) | CallStyle::Await(_)));
        let is_refused =
            route.via == DirectOrProxyRoute::Tunnel && (route.refusals > 0 || route.is_forgetful() && route.leaves);
        let is_cut = script.framing == ScriptedFraming::Close && route.is_secure() && !route.notifies;
        let got = match got {
            Ok(got) => got,
            Err(_) if is_risky || fails || breaks || is_refused || is_cut || route.is_stranger => return,
            Err(error)
                if is_once && route.via == DirectOrProxyRoute::Forward && route.login == RequiredProxyAuth::Digest =>
            {
                eprintln!("{what}: {error}");
                return;
            }
            Err(error) => panic!("{what}: {error} ({})", error.exit_code()),
        };
        if got.status == 503 && fails && is_risky || got.status == 502 && route.refusals > 0 && is_risky {
            return;
        }
        if route.is_stranger {
            assert_eq!((got.status, route.via), (407, DirectOrProxyRoute::Forward), "{what}");
            return;
        }
        assert_eq!(got.number, Some(number), "{what}: the response is another's");
        let has_none =
            method == "HEAD" || matches!(script.framing, ScriptedFraming::NoContent | ScriptedFraming::NotModified);
        let size = if has_none { 0 } else { script.size };
        assert!(scripted_server::content(number, size).starts_with(&got.body), "{what}: other content");
        assert!(has_none || !is_cut || !got.is_whole, "{what}: an end that nobody said");
        // Without TLS, a body that ends with the connection may be truncated unnoticed.
        let may_be_less = route.breaks > 0 && script.framing == ScriptedFraming::Close && !route.is_secure();
        assert!(!got.is_whole || may_be_less || got.body.len() == size, "{what}: {} of {size} bytes", got.body.len());
        if let (Some(UploadPlan(size, _)), false) = (self.sends, script.early || number != self.number) {
            assert!(self.server.got(number, &scripted_server::upload(number, size)), "{what}: what was sent");
        }
    }
}

fn try_http1(seed: u64) {
    try_route(seed, |_| SessionRoute::direct());
}

fn try_routes(seed: u64) {
    try_route(seed, SessionRoute::any);
}

fn try_route(seed: u64, route: fn(&mut Rng) -> SessionRoute) {
    let mut rng = Rng::new(seed);
    let route = route(&mut rng);
    let count = one_of(&mut rng, &[4, 20, 60]);
    let is_forged = rng.below(2) == 0;
    let ends = [
        ConnectionEnd::Keep,
        ConnectionEnd::Keep,
        ConnectionEnd::Keep,
        ConnectionEnd::Keep,
        ConnectionEnd::Say,
        ConnectionEnd::Silent,
        ConnectionEnd::Forged,
    ];
    let ends = &ends[..ends.len() - usize::from(!is_forged)];
    let scripts: HashMap<_, _> = (0..count).map(|number| (number, a_script(&mut rng, number, count, ends))).collect();
    let (server, scripts) = (ScriptedServer::start(scripts.clone(), route), Arc::new(scripts));
    let cases = (0..count).map(|number| RandomHttp1Request::any(&mut rng, &server, &scripts, number)).collect();
    let client = Client::builder().options(|options| options.retry = retrying(8).retry);
    let client = server.route().client(client, server.port(), &mut rng).build();
    let mut batch = a_batch(&mut rng);
    if is_forged {
        // With pipelining, a forged response would be taken for that of the next request.
        batch.pipeline = 1;
    }
    run_all(&client, cases, one_of(&mut rng, &[1, 1, 2, 6]), &batch);
    assert_eq!(server.misunderstood(), Vec::<String>::new(), "{:?}", server.route());
}

#[test]
fn requests_get_their_own_response_or_an_error() {
    each(200, 2, try_http1);
}

#[test]
fn requests_by_any_route_get_their_own_responses() {
    each(200, 2, try_routes);
}

/// A random request over HTTP/2, and the expected response.
#[derive(Clone)]
struct RandomHttp2Request {
    url: String,
    asks: RequestedBody,
    way: CallStyle,
    /// True if the request may fail, because its connection may break and the request must not be
    /// sent again.
    may_fail: bool,
}

/// The body of the response that a request asks for.
#[derive(Clone, Copy)]
enum RequestedBody {
    /// A response body: a number of bytes of the byte pattern with a seed. The fields are the seed
    /// and the number.
    Content(u64, usize),
    /// A response body that repeats the request's body. The fields are the number of the request
    /// and the plan of its body.
    Echo(u64, UploadPlan),
}

impl SessionRequest for RandomHttp2Request {
    fn way(&self) -> CallStyle {
        self.way
    }

    fn request(&self, client: &Client) -> RequestBuilder {
        match self.asks {
            RequestedBody::Content(..) => client.get(&self.url),
            RequestedBody::Echo(number, sends) => {
                sends.put(client.put(&self.url), byte_pattern::compressible_text(number, sends.0))
            }
        }
    }

    fn check(&self, got: Result<SessionResponse, Error>) {
        let got = match got {
            Ok(got) => got,
            Err(_) if self.may_fail => return,
            Err(error) => panic!("{} {:?}: {error} ({})", self.url, self.way, error.exit_code()),
        };
        let expected = match self.asks {
            RequestedBody::Content(seed, size) => BytePattern::new(seed).slice(0, size),
            RequestedBody::Echo(number, sends) if got.is_whole => {
                let echo: serde_json::Value = serde_json::from_slice(&got.body).expect("JSON");
                assert_eq!(echo["body_len"], sends.0);
                assert!(echo["body"].as_str().unwrap().as_bytes() == byte_pattern::compressible_text(number, sends.0));
                return;
            }
            RequestedBody::Echo(..) => return,
        };
        assert_eq!(got.status, 200);
        assert!(expected.starts_with(&got.body), "{} {:?}: other content", self.url, self.way);
        assert!(!got.is_whole || got.body.len() == expected.len(), "{}: {} bytes", self.url, got.body.len());
    }
}

fn try_http2(seed: u64) {
    let mut rng = Rng::new(seed);
    let faulty = FaultyOrigin::builder().http2().start().unwrap();
    let honest = Origin::builder().http2(one_of(&mut rng, &[1, 3, 100])).start().unwrap();
    let is_secure = rng.below(2) == 0;
    let pem = [faulty.ca_pem(), honest.ca_pem()].concat();
    let (trusting, _ca) = trusting_ca(&pem);
    let options = if is_secure { with_h2_alpn(trusting) } else { with_prior_knowledge(RequestOptions::default()) };
    let client =
        Client::builder().options(|own| *own = RequestOptions { retry: retrying(50).retry, ..options }).build();
    let count = one_of(&mut rng, &[4, 20, 60]);
    let cases = (0..count).map(|number| {
        let way = CallStyle::any(&mut rng);
        if rng.below(3) == 0 {
            let url = if is_secure { honest.https_url("/echo") } else { honest.url("/echo") };
            return RandomHttp2Request {
                url,
                asks: RequestedBody::Echo(number, UploadPlan::any(&mut rng)),
                way,
                may_fail: false,
            };
        }
        let size = one_of(&mut rng, &[0, 40, 3_000, 20_000, 70_000, 300_000]);
        let how = one_of(
            &mut rng,
            &[BreakKind::Rst, BreakKind::Close, BreakKind::Reset, BreakKind::GoAway, BreakKind::GoAwayCut],
        );
        let breaks = if rng.below(8) == 0 {
            vec![BodyBreak { how, place: BodyBreakOffset::At(rng.below(size.max(1))), times: Some(1) }]
        } else {
            Vec::new()
        };
        let plan =
            FaultPlan { size, seed: number + 1, refuse: u64::from(rng.below(12) == 0), breaks, ..FaultPlan::default() };
        let path = faulty.serve(&number.to_string(), plan);
        let url = if is_secure { faulty.https_url(&path) } else { faulty.url(&path) };
        // Bytes that the program has read cannot restart.
        let may_fail = matches!(way, CallStyle::Read(_) | CallStyle::Await(_));
        RandomHttp2Request { url, asks: RequestedBody::Content(number + 1, size as usize), way, may_fail }
    });
    let cases = cases.collect();
    let batch = a_batch(&mut rng);
    run_all(&client, cases, one_of(&mut rng, &[1, 2, 6]), &batch);
}

#[test]
fn each_http2_request_gets_its_own_response() {
    each(60, 2, try_http2);
}
