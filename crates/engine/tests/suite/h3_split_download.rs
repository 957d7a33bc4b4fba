//! Tests of split downloads over HTTP/3: each part uses a separate QUIC
//! connection.

use crate::common;
use crate::support::ranges;

use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use common::{assert_same, trusting_ca};
use haul::request::{ConnectToRule, Http3Policy, SplitDownloadOptions};
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::file::FileSink;
use haul::{Client, ProtocolVersion, RequestOptions};
use ranges::{
    MIB, NonRestartableSink, RATE, SIZE, assert_split, assert_success, content, fetch, rate_limited_plan, refusals,
    splitting,
};
use tempfile::TempDir;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin, FaultyRequestLog};
use testkit::http3::Http3Settings;
use testkit::lossy_link_model::LinkConditions;
use testkit::origin::Origin;
use testkit::relay::Relay;
use testkit::udp_relay::UdpRelay;

/// Starts an origin with faults that speaks HTTP/3. `limit` is the maximum number of its
/// connections.
fn faulty_http3_origin(limit: Option<usize>) -> FaultyOrigin {
    let builder = FaultyOrigin::builder().http3(Http3Settings::new());
    limit.into_iter().fold(builder, |builder, most| builder.connection_limit(most)).start().expect("an origin")
}

/// Returns options for a split download over HTTP/3 alone, and the file with the CA certificate.
/// The file must outlive the options.
fn splitting_over_http3(ca_pem: &str) -> (RequestOptions, tempfile::NamedTempFile) {
    let (trusting, file) = trusting_ca(ca_pem);
    (RequestOptions { tls: trusting.tls, http3: Http3Policy::Only, ..splitting() }, file)
}

/// Returns the number of connections on which the requests arrived.
fn connections(seen: &FaultyRequestLog) -> usize {
    seen.requests.iter().map(|request| request.connection).collect::<HashSet<_>>().len()
}

#[test]
fn http3_body_is_split_over_quic_connections() {
    let origin = faulty_http3_origin(None);
    let (options, _ca) = splitting_over_http3(origin.ca_pem());
    let expected = content(&rate_limited_plan(), 0);
    let dir = TempDir::new().unwrap();
    for to in ["memory", "pipe", "file"] {
        let (url, client) = (origin.https_url(&origin.serve(to, rate_limited_plan())), Client::new());
        let outcome = match to {
            "memory" => {
                let once = NonRestartableSink::default();
                let outcome = fetch(&client, &url, &options, once.clone());
                assert_same(&once.taken(), &expected);
                outcome
            }
            "pipe" => {
                let (mut reader, writer) = io::pipe().unwrap();
                let reading = thread::spawn(move || {
                    let mut all = Vec::new();
                    reader.read_to_end(&mut all).map(|_| all).unwrap()
                });
                let sink = BlockingOutputSink::new(DescriptorWriter::new(writer.into()), None);
                let outcome = fetch(&client, &url, &options, sink);
                assert_same(&reading.join().unwrap(), &expected);
                outcome
            }
            _ => {
                let file = dir.path().join(to);
                let outcome = fetch(&client, &url, &options, FileSink::new(&file));
                assert_same(&std::fs::read(&file).unwrap(), &expected);
                outcome
            }
        };
        assert_success(&outcome);
        let seen = origin.seen(to);
        assert_split(&seen);
        assert_eq!(outcome.facts.version, Some(ProtocolVersion::Http3), "{to}");
        assert_eq!((outcome.facts.body_bytes, u64::from(outcome.facts.requests)), (SIZE, seen.requests.len() as u64));
        assert!((2..=6).contains(&connections(&seen)), "{to}: {} connections", connections(&seen));
        assert_eq!(connections(&seen), outcome.facts.connects as usize, "{to}");
    }
}

#[test]
fn split_connections_stay_within_the_limit() {
    let origin = faulty_http3_origin(None);
    let dir = TempDir::new().unwrap();
    let plan = FaultPlan { size: 16 * MIB, ..rate_limited_plan() };
    let (over_http3, _ca) = splitting_over_http3(origin.ca_pem());
    for most in [2, 6] {
        for (name, options) in [("http1", splitting()), ("http3", over_http3.clone())] {
            let options =
                RequestOptions { split: SplitDownloadOptions { connections: most, ..options.split }, ..options };
            let (name, file) = (format!("{name}-{most}"), dir.path().join(name));
            let path = origin.serve(&name, plan.clone());
            let url = if options.http3 == Http3Policy::Only { origin.https_url(&path) } else { origin.url(&path) };
            let outcome = fetch(&Client::new(), &url, &options, FileSink::new(&file));
            assert_success(&outcome);
            assert_same(&std::fs::read(&file).unwrap(), &content(&plan, 0));
            let used = connections(&origin.seen(&name));
            assert!((2..=most).contains(&used), "{name}: {used} connections");
        }
    }
}

#[test]
fn wrong_http3_range_responses_leave_one_stream() {
    let origin = Arc::new(faulty_http3_origin(None));
    let threads: Vec<_> = refusals()
        .into_iter()
        .map(|(name, plan)| {
            let origin = Arc::clone(&origin);
            thread::spawn(move || {
                let (options, _ca) = splitting_over_http3(origin.ca_pem());
                let name = name.replace(' ', "-");
                let (url, once) = (origin.https_url(&origin.serve(&name, plan.clone())), NonRestartableSink::default());
                assert_success(&fetch(&Client::new(), &url, &options, once.clone()));
                assert_same(&once.taken(), &content(&plan, 0));
                let seen = origin.seen(&name);
                assert!((2..10).contains(&seen.requests.len()), "{name}: {} requests", seen.requests.len());
                assert_eq!(seen.bodies[0].sent, SIZE, "{name}: the first stream was to be left alone");
            })
        })
        .collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "see above which");
}

#[test]
fn refused_quic_connections_lower_the_split() {
    for most in [1, 3] {
        let origin = faulty_http3_origin(Some(most));
        let (options, _ca) = splitting_over_http3(origin.ca_pem());
        let (url, once) = (origin.https_url(&origin.serve("few", rate_limited_plan())), NonRestartableSink::default());
        assert_success(&fetch(&Client::new(), &url, &options, once.clone()));
        assert_same(&once.taken(), &content(&rate_limited_plan(), 0));
        let used = connections(&origin.seen("few"));
        assert!(used <= most, "{used} connections of {most}");
        assert!(origin.connections() > most as u64, "no further connection was tried");
    }
}

#[test]
fn broken_http3_part_resumes_at_the_exact_byte() {
    let places = [MIB + MIB / 2, 2 * MIB + 7, 3 * MIB + 1];
    let origin = faulty_http3_origin(None);
    let (options, _ca) = splitting_over_http3(origin.ca_pem());
    let breaks = places.iter().map(|&at| BodyBreak::reset_at(at).times(1)).collect();
    let plan = FaultPlan { breaks, ..rate_limited_plan() };
    let (url, once) = (origin.https_url(&origin.serve("broken", plan.clone())), NonRestartableSink::default());
    assert_success(&fetch(&Client::new(), &url, &options, once.clone()));
    assert_same(&once.taken(), &content(&plan, 0));
    assert!(origin.seen("broken").requests.len() > 2, "it was not split");
}

#[test]
fn parts_of_a_body_over_tcp_use_no_http3() {
    let origin = Origin::builder().http3(Http3Settings::new()).advertise_http3().start().expect("an origin");
    let relay = Relay::to(origin.https_addr()).rate(RATE).start().unwrap();
    let (options, _ca) = splitting_over_http3(origin.ca_pem());
    // The first response offers HTTP/3 by an Alt-Svc field.
    let options = RequestOptions { http3: Http3Policy::Learned, ..options };
    let (url, once) =
        (format!("https://localhost:{}/bytes/{SIZE}", relay.addr().port()), NonRestartableSink::default());
    assert_success(&fetch(&Client::new(), &url, &options, once.clone()));
    assert_same(&once.taken(), &origin.pattern().slice(0, SIZE as usize));
    assert!(!options.http3_cache.is_empty(), "HTTP/3 was offered");
    assert!(relay.connections() > 1, "it was not split");
    assert_eq!(origin.quic_connections(), 0);
}

#[test]
fn slow_quic_flows_are_used_side_by_side() {
    let origin = Origin::builder().http3(Http3Settings::new()).start().expect("an origin");
    // The relay limits the rate of each QUIC connection.
    let link = LinkConditions::new().rate(RATE);
    let relay = UdpRelay::to(origin.https_addr()).conditions(link).start().unwrap();
    let (options, _ca) = splitting_over_http3(origin.ca_pem());
    let to_port = Some(relay.addr().port());
    let connect_to = vec![ConnectToRule { host: None, port: None, to_host: None, to_port }];
    for policy in [Http3Policy::Only, Http3Policy::Race] {
        origin.forget();
        let options = RequestOptions { http3: policy, connect_to: connect_to.clone(), ..options.clone() };
        let once = NonRestartableSink::default();
        let before = origin.quic_connections();
        let outcome = fetch(&Client::new(), &origin.https_url(&format!("/bytes/{SIZE}")), &options, once.clone());
        assert_success(&outcome);
        assert_same(&once.taken(), &origin.pattern().slice(0, SIZE as usize));
        let opened = origin.quic_connections() - before;
        assert!((2..=6).contains(&opened), "{policy:?}: {opened} QUIC connections");
        assert!(origin.log().iter().all(|request| request.version == "HTTP/3.0"), "{policy:?}");
    }
}
