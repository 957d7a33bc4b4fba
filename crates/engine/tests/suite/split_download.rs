//! Tests of split downloads: one body is fetched over several connections, as closed ranges of one
//! representation. If that is impossible, it is fetched as one stream.

use crate::common;
use crate::support::ranges;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{assert_same, following};
use haul::buffer_pool::OfferedBodyBytes;
use haul::request::basic_authorization;
use haul::request::{SpeedLimit, SplitDownloadOptions, StallLimit};
use haul::sink::Sink;
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::file::FileSink;
use haul::{Client, RequestOptions};
use ranges::{
    MIB, NonRestartableSink, RATE, SIZE, assert_split, assert_success, closed_range, content, fetch, origin, ranges,
    rate_limited_plan, splitting,
};
use tempfile::TempDir;
use testkit::byte_pattern::BytePattern;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::relay::Relay;

#[test]
fn split_download_is_identical_in_every_sink() {
    let origin = origin();
    let (options, _file) = ranges::splitting_over_tls(&origin);
    let expected = content(&rate_limited_plan(), 0);
    let dir = TempDir::new().unwrap();
    for tls in [false, true] {
        let path = |to: &str| origin.serve(&format!("{to}-{tls}"), rate_limited_plan());
        let url = |path: &str| if tls { origin.https_url(path) } else { origin.url(path) };

        let once = NonRestartableSink::default();
        let outcome = fetch(&Client::new(), &url(&path("memory")), &options, once.clone());
        assert_success(&outcome);
        assert_same(&once.taken(), &expected);
        assert_eq!(outcome.facts.body_bytes, SIZE);
        assert_split(&origin.seen(&format!("memory-{tls}")));

        let (mut reader, writer) = io::pipe().unwrap();
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all).unwrap()
        });
        let sink = BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None);
        let outcome = fetch(&Client::new(), &url(&path("pipe")), &options, sink);
        assert_success(&outcome);
        assert_same(&reading.join().unwrap(), &expected);
        assert_split(&origin.seen(&format!("pipe-{tls}")));

        let file = dir.path().join(format!("file-{tls}"));
        let outcome = fetch(&Client::new(), &url(&path("file")), &options, FileSink::new(&file));
        assert_success(&outcome);
        assert_same(&std::fs::read(&file).unwrap(), &expected);
        assert_eq!(outcome.facts.body_bytes, SIZE);
        let seen = origin.seen(&format!("file-{tls}"));
        assert_split(&seen);
        assert_eq!(u64::from(outcome.facts.requests), seen.requests.len() as u64);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing lies beside the files");
}

#[test]
fn single_connection_requests_no_range() {
    let origin = origin();
    let path = origin.serve("one", FaultPlan { size: MIB, ..rate_limited_plan() });
    let once = NonRestartableSink::default();
    let options = RequestOptions { split: SplitDownloadOptions::default(), ..splitting() };
    assert_success(&fetch(&Client::new(), &origin.url(&path), &options, once.clone()));
    assert_same(&once.taken(), &BytePattern::new(1).slice(0, MIB as usize));
    assert_eq!((origin.seen("one").requests.len(), ranges(&origin.seen("one")).len()), (1, 0));
}

fn assert_one_stream_suffices(name: &str, plan: &FaultPlan, origin: &FaultyOrigin, way: &str) {
    let path = origin.serve(name, plan.clone());
    let (options, _file) = ranges::splitting_over_tls(origin);
    let url = if way == "tls" { origin.https_url(&path) } else { origin.url(&path) };
    let got = if way == "file" {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("file");
        assert_success(&fetch(&Client::new(), &url, &options, FileSink::new(&file)));
        std::fs::read(file).unwrap()
    } else {
        let once = NonRestartableSink::default();
        assert_success(&fetch(&Client::new(), &url, &options, once.clone()));
        once.taken()
    };
    assert_same(&got, &content(plan, 0));
    let seen = origin.seen(name);
    assert!(seen.requests.len() > 1, "{name}: no part was tried");
    assert!(seen.requests.len() < 10, "{name}: {} requests", seen.requests.len());
    assert_eq!(seen.bodies[0].sent, SIZE, "{name}: the first stream was to be left alone");
    // Unwanted parts are closed at once; bytes sent until then are lost.
    assert!(seen.twice() <= SIZE, "{name}: {} bytes were sent twice", seen.twice());
}

#[test]
fn wrong_range_responses_fall_back_to_one_stream() {
    let origin = Arc::new(origin());
    let ways = ["memory", "file", "tls"];
    let cases = ranges::refusals().into_iter().flat_map(|(name, plan)| ways.map(|way| (name, plan.clone(), way)));
    let threads = cases.map(|(name, plan, way)| {
        let origin = Arc::clone(&origin);
        let name = format!("{name} {way}").replace(' ', "-");
        thread::spawn(move || assert_one_stream_suffices(&name, &plan, &origin, way))
    });
    let threads: Vec<_> = threads.collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "see above which");
}

#[test]
fn accept_ranges_none_prevents_splitting() {
    let body = BytePattern::new(3).slice(0, 2 * MIB as usize);
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"x\"\r\nAccept-Ranges: none\r\n\r\n", body.len());
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Send(body.clone())]);
    let relay = Relay::to(peer.addr()).rate(RATE).start().unwrap();
    let once = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), &format!("http://{}/", relay.addr()), &splitting(), once.clone()));
    assert_same(&once.taken(), &body);
    assert_eq!((relay.connections(), peer.connections()), (1, 1));
}

#[test]
fn weak_validator_prevents_splitting() {
    let body = BytePattern::new(4).slice(0, 2 * MIB as usize);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: W/\"x\"\r\n\r\n", body.len());
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Send(body.clone())]);
    let relay = Relay::to(peer.addr()).rate(RATE).start().unwrap();
    let once = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), &format!("http://{}/", relay.addr()), &splitting(), once.clone()));
    assert_same(&once.taken(), &body);
    assert_eq!(relay.connections(), 1);
}

#[test]
fn broken_part_resumes_at_the_exact_byte() {
    let places = [MIB + MIB / 2, 2 * MIB + 7, 3 * MIB + 1];
    let dir = TempDir::new().unwrap();
    for to_file in [false, true] {
        let origin = origin();
        let breaks = places.iter().map(|&at| BodyBreak::close_at(at).times(1)).collect();
        let plan = FaultPlan { breaks, ..rate_limited_plan() };
        let path = origin.serve("broken", plan.clone());
        let got = if to_file {
            let file = dir.path().join("file");
            assert_success(&fetch(&Client::new(), &origin.url(&path), &splitting(), FileSink::new(&file)));
            std::fs::read(file).unwrap()
        } else {
            let once = NonRestartableSink::default();
            assert_success(&fetch(&Client::new(), &origin.url(&path), &splitting(), once.clone()));
            once.taken()
        };
        assert_same(&got, &content(&plan, 0));
        let seen = origin.seen("broken");
        assert!(seen.twice() <= SIZE / 4, "{} bytes were sent twice", seen.twice());
        if !to_file {
            for at in places {
                let from = format!("bytes={at}-");
                assert!(ranges(&seen).iter().any(|range| range.starts_with(&from)), "{from}: {:?}", ranges(&seen));
            }
        }
    }
}

#[test]
fn reset_parts_refetch_only_bytes_in_flight() {
    let origin = origin();
    let breaks = (1..8).map(|at| BodyBreak::reset_at(at * MIB / 2 + 99).times(1)).collect();
    let plan = FaultPlan { breaks, ..rate_limited_plan() };
    let path = origin.serve("reset", plan.clone());
    let once = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), &origin.url(&path), &splitting(), once.clone()));
    assert_same(&once.taken(), &content(&plan, 0));
    assert!(origin.seen("reset").twice() <= SIZE / 2, "{}", origin.seen("reset").twice());
}

#[test]
fn stalled_part_or_first_stream_is_refetched() {
    let threads = [2 * MIB + 5, 700 << 10].map(|at| {
        thread::spawn(move || {
            let origin = origin();
            let plan = FaultPlan {
                breaks: vec![BodyBreak::stall_at(at).times(1)],
                range_rate: Some(RATE / 4),
                ..rate_limited_plan()
            };
            let path = origin.serve("stalled", plan.clone());
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("file");
            // Only an unsplit stream needs this limit.
            let limit = SpeedLimit { bytes_per_second: 1, time: Duration::from_secs(20) };
            let options = RequestOptions { speed_limit: Some(limit), ..splitting() };
            assert_success(&fetch(&Client::new(), &origin.url(&path), &options, FileSink::new(&file)));
            assert_same(&std::fs::read(file).unwrap(), &content(&plan, 0));
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn changed_content_in_a_split_is_error_or_restart() {
    let plan = FaultPlan { change: Some(testkit::faulty::ContentChangeTrigger::Bytes(MIB)), ..rate_limited_plan() };
    let origin = origin();
    let path = origin.serve("pipe", plan.clone());
    let once = NonRestartableSink::default();
    let outcome = fetch(&Client::new(), &origin.url(&path), &splitting(), once.clone());
    let got = once.taken();
    match ranges::exit_code(&outcome) {
        // The first stream may continue with the old content if no part has arrived.
        0 => assert_same(&got, &content(&plan, 0)),
        code => {
            assert_eq!(code, 36, "{:?}", outcome.result);
            assert_same(&got, &content(&plan, 0)[..got.len()]);
        }
    }

    let path = origin.serve("file", plan.clone());
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    assert_success(&fetch(&Client::new(), &origin.url(&path), &splitting(), FileSink::new(&file)));
    let got = std::fs::read(&file).unwrap();
    let version = u64::from(got[..64] != content(&plan, 0)[..64]);
    assert_same(&got, &content(&plan, version));
}

#[test]
fn split_download_uses_all_addresses_of_a_host() {
    let origin = origin();
    let path = origin.serve("spread", FaultPlan { size: SIZE, ..FaultPlan::default() });
    let one = Relay::to(origin.http_addr()).rate(RATE).start().unwrap();
    let port = one.addr().port();
    let other = SocketAddr::from(([127, 0, 0, 2], port));
    let Ok(two) = Relay::to(origin.http_addr()).rate(RATE).listen(other).start() else {
        use io::Write;
        let _ = writeln!(io::stderr(), "skipped: several addresses: 127.0.0.2 cannot be bound here");
        return;
    };
    let client = Client::new();
    client.resolver().add_override(&format!("split.test:{port}:127.0.0.1,127.0.0.2")).unwrap();
    let once = NonRestartableSink::default();
    assert_success(&fetch(&client, &format!("http://split.test:{port}{path}"), &splitting(), once.clone()));
    assert_same(&once.taken(), &BytePattern::new(1).slice(0, SIZE as usize));
    assert!(one.connections() > 0 && two.connections() > 0, "{} and {}", one.connections(), two.connections());
}

/// Fetches a URL with secrets in the request, over a slow link, so that the body is fetched in
/// parts.
fn with_secrets(origin: &Origin, url: &str) {
    let mut options = splitting();
    options.redirects.follow = true;
    options.authorization = Some(basic_authorization(b"me", b"secret"));
    options.cookie = Some(b"session=1".to_vec());
    options.fields.push(("X-Own".into(), b"yes".to_vec()));
    let once = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), url, &options, once.clone()));
    assert_same(&once.taken(), &origin.pattern().slice(0, SIZE as usize));
}

#[test]
fn parts_of_the_same_origin_carry_secrets() {
    let origin = Origin::builder().start().unwrap();
    let relay = Relay::to(origin.http_addr()).rate(RATE).start().unwrap();
    with_secrets(&origin, &format!("http://{}/redirect/302?to=/bytes/{SIZE}", relay.addr()));
    let log = origin.log();
    assert_eq!(log.iter().filter(|request| request.target.starts_with("/redirect")).count(), 1);
    assert!(log.iter().any(|request| request.header("range").is_some()), "it was not split");
    for request in log {
        assert!(request.header("authorization").is_some() && request.header("cookie").is_some(), "{request:?}");
        assert_eq!(request.header("x-own"), Some("yes"));
    }
}

#[test]
fn parts_at_a_redirect_target_carry_no_secrets() {
    let origin = Origin::builder().start().unwrap();
    let relay = Relay::to(origin.http_addr()).rate(RATE).start().unwrap();
    let location = format!("http://{}/bytes/{SIZE}", relay.addr());
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let entry = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head)]);
    with_secrets(&origin, &entry.url("/"));
    assert_eq!(entry.connections(), 1);
    assert!(String::from_utf8(entry.received(0)).unwrap().contains("Authorization: "));
    let log = origin.log();
    assert!(log.iter().any(|request| request.header("range").is_some()), "it was not split");
    for request in log {
        assert!(request.header("authorization").is_none() && request.header("cookie").is_none(), "{request:?}");
    }
}

/// A sink that checks how far ahead of the output the parts of a split download are requested.
struct ReadAheadCheckingSink {
    once: NonRestartableSink,
    origin: Arc<FaultyOrigin>,
    memory: u64,
    most: Arc<Mutex<u64>>,
}

impl Sink for ReadAheadCheckingSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        self.once.bytes(offered)?;
        let out = self.once.taken().len() as u64;
        let asked = ranges(&self.origin.seen("ahead"));
        let furthest = asked.iter().filter_map(|range| closed_range(range)).map(|(_, last)| last + 1).max();
        if let Some(furthest) = furthest {
            let mut most = self.most.lock().unwrap();
            *most = (*most).max(furthest.saturating_sub(out));
            assert!(furthest <= out + self.memory, "{furthest} is further ahead of {out} than {}", self.memory);
        }
        Ok(())
    }

    fn restart(&mut self) -> bool {
        false
    }
}

#[test]
fn split_parts_stay_within_the_memory_limit() {
    let origin = Arc::new(origin());
    let path = origin.serve("ahead", rate_limited_plan());
    let memory = MIB;
    let (once, most) = (NonRestartableSink::default(), Arc::new(Mutex::new(0)));
    let sink =
        ReadAheadCheckingSink { once: once.clone(), origin: Arc::clone(&origin), memory, most: Arc::clone(&most) };
    let options = RequestOptions { split: SplitDownloadOptions { connections: 6, memory }, ..splitting() };
    assert_success(&fetch(&Client::new(), &origin.url(&path), &options, sink));
    assert_same(&once.taken(), &content(&rate_limited_plan(), 0));
    assert!(*most.lock().unwrap() > 0, "it was not split");
}

/// A sink that keeps the processor busy for each piece, so that the client limits the rate.
struct CpuBoundSink(NonRestartableSink);

impl Sink for CpuBoundSink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        let until = Instant::now() + Duration::from_micros(offered.bytes().len() as u64 / 4);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.0.bytes(offered)
    }

    fn restart(&mut self) -> bool {
        false
    }
}

#[test]
fn busy_client_does_not_split() {
    let origin = origin();
    let path = origin.serve("busy", FaultPlan { rate: None, ..rate_limited_plan() });
    let once = NonRestartableSink::default();
    assert_success(&fetch(&Client::new(), &origin.url(&path), &splitting(), CpuBoundSink(once.clone())));
    assert_same(&once.taken(), &content(&rate_limited_plan(), 0));
    // A probe costs one range. A split body has dozens.
    let seen = origin.seen("busy").requests.len();
    assert!(seen <= 3, "{seen} requests");
}

#[test]
fn pausing_reader_does_not_trigger_speed_limit() {
    let origin = origin();
    let path = origin.serve("paused", rate_limited_plan());
    let (mut reader, writer) = io::pipe().unwrap();
    let reading = thread::spawn(move || {
        let mut all = vec![0; 2 * MIB as usize];
        reader.read_exact(&mut all).unwrap();
        thread::sleep(Duration::from_secs(7));
        reader.read_to_end(&mut all).map(|_| all).unwrap()
    });
    let limit = SpeedLimit { bytes_per_second: 1, time: Duration::from_secs(3) };
    let options = RequestOptions { speed_limit: Some(limit), ..splitting() };
    let sink = BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None);
    assert_success(&fetch(&Client::new(), &origin.url(&path), &options, sink));
    assert_same(&reading.join().unwrap(), &content(&rate_limited_plan(), 0));
    assert!(origin.seen("paused").twice() <= SIZE / 4, "{} bytes were sent twice", origin.seen("paused").twice());
}

#[test]
fn limit_rate_covers_all_connections_together() {
    let origin = origin();
    let path = origin.serve("limited", FaultPlan { rate: Some(RATE / 4), size: 2 * MIB, ..rate_limited_plan() });
    let once = NonRestartableSink::default();
    let options = RequestOptions { limit_rate: Some(RATE / 4), ..splitting() };
    let outcome = fetch(&Client::new(), &origin.url(&path), &options, once.clone());
    assert_success(&outcome);
    assert_same(&once.taken(), &BytePattern::new(1).slice(0, 2 * MIB as usize));
    // A slow machine takes longer: 4 s at this rate, with any number of connections.
    assert!(outcome.facts.total >= Duration::from_secs(2), "{:?}", outcome.facts.total);
}

/// A server that redirects `/asset` to signed URLs. Each signed URL is valid for two requests. The
/// server answers further ones with a status that means "no longer", and records the paths of all
/// requests.
struct SignedUrlServer {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl SignedUrlServer {
    fn start(body: Vec<u8>, expired: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (addr, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let (body, noted) = (Arc::new(body), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (body, noted) = (Arc::clone(&body), Arc::clone(&noted));
                // A client that closes early ends the write.
                thread::spawn(move || serve_signed(stream.unwrap(), &body, expired, &noted));
            }
        });
        Self { addr, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve_signed(mut stream: TcpStream, body: &[u8], expired: &str, noted: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let (assets, uses) = {
        let mut noted = noted.lock().unwrap();
        noted.push(path.clone());
        let count = |wanted: &str| noted.iter().filter(|path| *path == wanted).count();
        (count("/asset"), count(&path))
    };
    if path == "/asset" {
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: /blob/{assets}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return stream.write_all(head.as_bytes());
    }
    if uses > 2 {
        let head = format!("HTTP/1.1 {expired}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return stream.write_all(head.as_bytes());
    }
    let range = head.lines().find_map(|line| line.strip_prefix("Range: bytes="));
    let (first, end) = range.map_or((0, body.len()), |range| {
        let (first, last) = range.split_once('-').unwrap();
        (first.parse().unwrap(), last.parse().map_or(body.len(), |last: usize| last + 1))
    });
    let status = match range {
        Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {first}-{}/{}", end - 1, body.len()),
        None => "200 OK".to_owned(),
    };
    let head =
        format!("HTTP/1.1 {status}\r\nETag: \"v\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", end - first);
    stream.write_all(head.as_bytes())?;
    for piece in body[first..end].chunks(RATE as usize / 40) {
        stream.write_all(piece)?;
        thread::sleep(Duration::from_millis(25));
    }
    Ok(())
}

#[test]
fn expired_signed_url_is_requested_again() {
    let expected = content(&rate_limited_plan(), 0);
    let options = RequestOptions { redirects: following().redirects, ..splitting() };
    let dir = TempDir::new().unwrap();
    for (to_file, expired) in [
        (false, "403 Forbidden"),
        (true, "401 Unauthorized"),
        (true, "403 Forbidden"),
        (true, "404 Not Found"),
        (true, "410 Gone"),
    ] {
        let server = SignedUrlServer::start(expected.clone(), expired);
        let url = format!("http://{}/asset", server.addr);
        let (file, once) = (dir.path().join("file"), NonRestartableSink::default());
        let outcome = match to_file {
            true => fetch(&Client::new(), &url, &options, FileSink::new(&file)),
            false => fetch(&Client::new(), &url, &options, once.clone()),
        };
        assert_success(&outcome);
        let got = if to_file { std::fs::read(&file).unwrap() } else { once.taken() };
        assert_same(&got, &expected);
        let asked = server.asked();
        assert!(asked.iter().filter(|path| *path == "/blob/1").count() > 2, "it was refused: {asked:?}");
    }
}

/// Checks that a split download may take longer than the limit on silence, since bytes arrive all
/// the time.
#[test]
fn split_download_may_outlast_the_stall_limit() {
    let origin = origin();
    let plan = FaultPlan { size: 5 * SIZE, rate: Some(MIB), ..FaultPlan::default() };
    let limit = Duration::from_millis(1200);
    let stall = RequestOptions { stall: Some(StallLimit { time: limit, awaits_head: false }), ..splitting() };
    let read = RequestOptions { read_timeout: Some(limit), ..splitting() };
    for (name, options) in [("stall", stall), ("read", read)] {
        let path = origin.serve(name, plan.clone());
        let sink = NonRestartableSink::default();
        let outcome = fetch(&Client::new(), &origin.url(&path), &options, sink.clone());
        assert_success(&outcome);
        assert!(outcome.facts.total > 2 * limit, "{name}: too fast to show anything");
        assert!(origin.seen(name).requests.len() > 1, "{name}: it was not split");
        assert_same(&sink.taken(), &content(&plan, 0));
    }
}
