//! Tests of batches through the public API: order, limits, cancellation, and use with the program's
//! own event loop.

mod common;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{BufferSink, PanickingContent, http2_origin, start_origin, trusting_ca, with_time_limit};
use haul::batch::{BatchOptions, BatchOrder};
use haul::buffer_pool::OfferedBodyBytes;
use haul::interrupt_callback::InterruptCallback;
use haul::net::pool::PoolLimits;
use haul::sink::{ReceivedIntoSink, Sink};
use haul::{Client, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::RecvFlags;
use testkit::h1_peer::{H1Peer, ScriptStep};

fn is_readable(fd: impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).unwrap();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&wait)).unwrap() > 0
}

#[test]
fn batch_delivers_in_input_or_completion_order() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("order", move || {
        let few = || BatchOptions { per_host: Some(6), ..BatchOptions::default() };
        let get = |i: u32| {
            let slow = if i.is_multiple_of(10) { "/delay/30" } else { "" };
            client.get(&origin.url(&format!("{slow}/small/{i}"))).build().unwrap()
        };
        let replies: Vec<_> = client.fetch_all((0..300).map(get), few()).collect();
        assert_eq!(replies.len(), 300);
        for (place, (index, reply)) in replies.into_iter().enumerate() {
            assert_eq!(index, place as u64);
            assert_eq!(reply.unwrap().body, format!("small {place}\n").into_bytes());
        }
        let options = BatchOptions { order: BatchOrder::Completion, ..few() };
        let replies: Vec<_> = client.fetch_all((0..300).map(get), options).collect();
        for (index, reply) in &replies {
            assert_eq!(reply.as_ref().unwrap().body, format!("small {index}\n").into_bytes());
        }
        assert_eq!(replies.iter().map(|(index, _)| *index).collect::<BTreeSet<_>>().len(), 300);
        assert!(!replies.is_sorted_by_key(|(index, _)| *index), "those that took long came later");
        // The second batch may start before the first has returned its connections.
        assert!(origin.peak_connections() <= 12);
    });
}

#[test]
fn batch_delivers_several_results_per_call() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("bunches", move || {
        let batch = client.batch(BatchOptions { max_parallel: 4, ..BatchOptions::default() });
        for i in 0..100 {
            batch.submit(client.get(&origin.url(&format!("/small/{i}"))).build().unwrap());
        }
        assert!(batch.next_bunch(0, None).unwrap().is_empty(), "nothing is wanted, and nothing waited for");
        let mut seen = Vec::new();
        while batch.outstanding() > 0 {
            let bunch = batch.next_bunch(7, None).unwrap();
            assert!((1..=7).contains(&bunch.len()));
            seen.extend(bunch.iter().map(haul::batch::FinishedRequest::id));
        }
        assert!(seen.iter().copied().eq(0..100));
        assert!(batch.next_bunch(7, None).unwrap().is_empty() && batch.try_bunch(7).is_empty());
        batch.submit(client.get(&origin.url("/delay/30000/small")).build().unwrap());
        let soon = std::time::Instant::now() + Duration::from_millis(20);
        assert!(batch.next_bunch(7, Some(soon)).unwrap().is_empty());
        assert_eq!(batch.outstanding(), 1);
    });
}

#[test]
fn failed_request_does_not_affect_others_in_batch() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("failures", move || {
        let urls = [origin.url("/small/0"), "http://127.0.0.1:1/".to_owned(), origin.url("/status/404")];
        let requests: Vec<_> = urls.iter().map(|url| client.get(url).build().unwrap()).collect();
        let replies: Vec<_> = client.fetch_all(requests, BatchOptions::default()).collect();
        assert_eq!(replies[0].1.as_ref().unwrap().body, b"small 0\n");
        let error = replies[1].1.as_ref().unwrap_err();
        assert!(error.is_connect() && error.url() == Some("http://127.0.0.1:1/"), "{error}");
        assert_eq!(replies[2].1.as_ref().unwrap().head.status(), 404);
    });
}

#[test]
fn batch_memory_limit_bounds_bodies_and_delivers_all() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("memory", move || {
        let size = 600_000;
        let content = origin.pattern().slice(0, size);
        for order in [BatchOrder::Input, BatchOrder::Completion] {
            let batch = client.batch(BatchOptions { order, memory: 1 << 20, ..BatchOptions::default() });
            let url = origin.url(&format!("/bytes/{size}"));
            for _ in 0..40 {
                batch.submit(client.get(&url).build().unwrap());
            }
            let mut seen = BTreeSet::new();
            while let Some(finished) = batch.next().unwrap() {
                if seen.is_empty() {
                    // While the program sleeps, no more bodies are requested than fit into memory.
                    std::thread::sleep(Duration::from_millis(200));
                    let served = origin.hits(&format!("/bytes/{size}"));
                    assert!(served <= 20, "{served} were asked for");
                }
                assert!(seen.insert(finished.id()));
                assert!(finished.into_reply().unwrap().body == content);
            }
            assert_eq!((seen.len(), batch.outstanding()), (40, 0));
            origin.forget();
        }
    });
}

#[test]
fn fetch_all_reads_requests_lazily_until_dropped() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("laziness", move || {
        let asked = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&asked);
        let url = origin.url("/small/1");
        let requests = (0..1_000_000).map({
            let client = client.clone();
            move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                client.get(&url).build().unwrap()
            }
        });
        let options = BatchOptions { max_parallel: 8, ..BatchOptions::default() };
        let mut replies = client.fetch_all(requests, options);
        for _ in 0..5 {
            replies.next().unwrap().1.unwrap();
        }
        drop(replies);
        assert!(asked.load(Ordering::Relaxed) <= 5 + 16);
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
        let batch = client.batch(BatchOptions::default());
        batch.submit(client.get(&peer.url("/")).build().unwrap());
        while peer.connections() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(batch);
        assert!(peer.finished(1));
    });
}

#[test]
fn cancelled_request_frees_its_connection_or_stream() {
    let origin = start_origin();
    let (trusted, _ca) = trusting_ca(origin.ca_pem());
    let http2 = http2_origin(10);
    let client = Client::builder()
        .options(|options| {
            options.tls = trusted.tls;
            options.prior_knowledge = true;
        })
        .build();
    let plain = Client::new();
    with_time_limit("giving up", move || {
        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
        let batch =
            plain.batch(BatchOptions { max_parallel: 1, order: BatchOrder::Completion, ..BatchOptions::default() });
        let hangs = batch.submit(plain.get(&peer.url("/")).build().unwrap());
        let waits = batch.submit(plain.get(&peer.url("/")).build().unwrap());
        let fine = batch.submit(plain.get(&origin.url("/small/1")).build().unwrap());
        assert!(peer.saw(0, b"\r\n\r\n"));
        assert!(batch.cancel(waits) && batch.cancel(hangs));
        assert!(peer.finished(1));
        let mut ends: Vec<_> = std::iter::from_fn(|| batch.next().unwrap())
            .map(|finished| (finished.id(), finished.into_reply().err().map(|error| error.kind())))
            .collect();
        ends.sort_by_key(|(id, _)| *id);
        let interrupted = Some(ErrorKind::Interrupted);
        assert_eq!(ends, [(hangs, interrupted), (waits, interrupted), (fine, None)]);
        assert!(!batch.cancel(fine) && !batch.cancel(99));

        // With HTTP/2, cancelling ends the stream and keeps the connection.
        let batch = client.batch(BatchOptions { order: BatchOrder::Completion, ..BatchOptions::default() });
        batch.submit(client.get(&http2.url("/small/1")).build().unwrap());
        batch.next().unwrap().unwrap().into_reply().unwrap();
        let slow = batch.submit(client.get(&http2.url("/delay/30000/small")).build().unwrap());
        while http2.hits("/delay/30000/small") == 0 && http2.requests() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(batch.cancel(slow));
        assert!(batch.next().unwrap().unwrap().into_reply().is_err());
        batch.submit(client.get(&http2.url("/small/2")).build().unwrap());
        assert_eq!(batch.next().unwrap().unwrap().into_reply().unwrap().body, b"small 2\n");
        assert_eq!(http2.connections(), 1);
    });
}

#[test]
fn batch_descriptor_is_readable_while_results_wait() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("descriptor", move || {
        let batch = client.batch(BatchOptions::default());
        let fd = batch.fd().unwrap();
        assert!(!is_readable(&fd, Duration::ZERO) && batch.try_next().is_none());
        for i in 0..50 {
            batch.submit(client.get(&origin.url(&format!("/small/{i}"))).build().unwrap());
        }
        let mut taken = 0;
        while taken < 50 {
            assert!(is_readable(&fd, Duration::from_secs(30)));
            let finished = batch.try_next().expect("what can be read is there");
            assert_eq!(finished.id(), taken);
            assert_eq!(finished.into_reply().unwrap().body, format!("small {taken}\n").into_bytes());
            taken += 1;
        }
        assert!(!is_readable(&fd, Duration::ZERO));
        // The batch is used again after a pause; a descriptor created late is readable for results
        // that wait.
        batch.submit(client.get(&origin.url("/small/7")).build().unwrap());
        while batch.outstanding() == 1 && !is_readable(batch.fd().unwrap(), Duration::from_millis(10)) {}
        assert_eq!(batch.try_next().unwrap().id(), 50);
    });
}

#[test]
fn batch_returns_sinks_and_interrupt_ends_its_wait() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("sinks", move || {
        let batch = client.batch(BatchOptions::default());
        batch.submit_into(client.get(&origin.url("/small/3")).build().unwrap(), Box::new(BufferSink::default()));
        let (outcome, sink) = batch.next().unwrap().unwrap().into_parts::<BufferSink>();
        assert!(outcome.result.is_ok());
        assert_eq!(sink.unwrap().bytes(), b"small 3\n");
        assert!(batch.next().unwrap().is_none());

        let asked = Arc::new(AtomicU64::new(0));
        let hook = InterruptCallback::new(move || asked.fetch_add(1, Ordering::Relaxed) >= 2);
        let batch = client.batch(BatchOptions { interrupt: Some(hook), ..BatchOptions::default() });
        batch.submit(client.get(&origin.url("/delay/30000/small")).build().unwrap());
        assert!(batch.next().err().is_some_and(|error| error.is_interrupted()));
        assert_eq!(batch.outstanding(), 1);
    });
}

/// A sink whose memory has room for 1,000 bytes at a time.
#[derive(Default)]
struct SmallMemorySink(Vec<u8>);

impl Sink for SmallMemorySink {
    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        self.0.extend_from_slice(offered.bytes());
        Ok(())
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, most: usize) -> Option<io::Result<ReceivedIntoSink>> {
        let mut piece = vec![0; most.min(1000)];
        let received = rustix::net::recv(socket, &mut piece[..], RecvFlags::empty()).map(|(n, _)| n);
        self.0.extend_from_slice(&piece[..received.unwrap_or(0)]);
        Some(received.map(|n| ReceivedIntoSink::new(n, piece.len())).map_err(io::Error::from))
    }

    fn restart(&mut self) -> bool {
        false
    }
}

/// Checks that a sink with room for 1,000 bytes at a time gets the whole body. Edge-triggered
/// events do not report the rest in the socket again, so the event loop must read on.
#[test]
fn body_that_fills_the_sinks_memory_arrives_whole() {
    const LEN: usize = 500_000;
    let origin = start_origin();
    let expected = origin.pattern().slice(0, LEN);
    let client = Client::new();
    with_time_limit("the transfer", move || {
        let batch = client.batch(BatchOptions::default());
        let request = client.get(&origin.url(&format!("/bytes/{LEN}"))).build().unwrap();
        batch.submit_into(request, Box::new(SmallMemorySink::default()));
        let (outcome, sink) = batch.next().unwrap().unwrap().into_parts::<SmallMemorySink>();
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        assert!(sink.unwrap().0 == expected);
    });
}

/// A sink that panics when it receives the first byte of a body.
struct PanickingSink;

impl Sink for PanickingSink {
    fn bytes(&mut self, _: OfferedBodyBytes<'_>) -> haul::Result<()> {
        panic!("on purpose");
    }

    fn restart(&mut self) -> bool {
        true
    }
}

#[test]
fn panicking_body_or_sink_fails_only_its_request() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("panics", move || {
        let batch = client.batch(BatchOptions { max_parallel: 1, ..BatchOptions::default() });
        let url = origin.url("/echo");
        for i in 0..10 {
            let request = match i {
                0 | 6 => client.post(&url).body_reader(PanickingContent, Some(5)),
                3 => client.get(&url),
                9 => client.post(&url).body_stream(PanickingContent, Some(5)),
                _ => client.get(&origin.url("/small")),
            };
            let request = request.build().unwrap();
            if i == 3 {
                batch.submit_into(request, Box::new(PanickingSink))
            } else {
                batch.submit(request)
            };
        }
        for i in 0..10 {
            let finished = batch.next().unwrap().unwrap();
            assert_eq!(finished.id(), i);
            match finished.into_reply() {
                Ok(reply) => assert!(i % 3 > 0 && reply.body == b"small\n"),
                Err(error) => assert_eq!((i % 3, error.kind(), error.url()), (0, ErrorKind::Panicked, Some(&*url))),
            }
        }
        assert!(batch.next().unwrap().is_none());
    });
}

#[test]
fn timeout_includes_retry_after_but_not_queueing() {
    let reply = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    let origin = start_origin();
    let client = Client::builder().options(|options| options.retry.max = 1).build();
    with_time_limit("time", move || {
        let limit = Duration::from_millis(300);
        let batch = client.batch(BatchOptions { max_parallel: 1, ..BatchOptions::default() });
        let get = |url: &str| batch.submit(client.get(url).timeout(limit).build().unwrap());
        let next = || batch.next().unwrap().unwrap().into_reply();
        // A POST is not retried.
        batch.submit(client.post(&peer.url("/")).build().unwrap());
        get(&peer.url("/with-it"));
        assert_eq!(next().unwrap().head.status(), 503);
        get(&peer.url("/behind-it"));
        for path in ["/with-it", "/behind-it"] {
            let error = next().unwrap_err();
            assert_eq!((error.kind(), error.url()), (ErrorKind::Timeout, Some(&*peer.url(path))));
        }
        assert_eq!(peer.connections(), 1);

        batch.submit(client.get(&origin.url("/delay/600/small")).build().unwrap());
        get(&origin.url("/small"));
        assert_eq!(next().unwrap().body, b"small\n");
        assert_eq!(next().unwrap().body, b"small\n");
    });
}

#[test]
fn pool_timeout_limits_the_time_in_the_queue() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("a turn", move || {
        let batch =
            client.batch(BatchOptions { max_parallel: 1, order: BatchOrder::Completion, ..BatchOptions::default() });
        let get = |path: &str, limit: Option<Duration>| {
            client.get(origin.url(path)).options(|options| options.pool_timeout = limit).build().unwrap()
        };
        let first = batch.submit(get("/delay/30000/small/1", Some(Duration::from_secs(5))));
        let second = batch.submit(get("/small/2", Some(Duration::from_millis(20))));
        let third = batch.submit(get("/small/3", None));
        let late = batch.next().unwrap().unwrap();
        assert_eq!(late.id(), second, "the first one began at once, so it has not waited");
        let error = late.into_reply().unwrap_err();
        assert_eq!((error.kind(), error.cause()), (ErrorKind::Timeout, "no connection became free in time".to_owned()));
        assert!(batch.cancel(first));
        assert_eq!(batch.next().unwrap().unwrap().id(), first);
        assert_eq!(batch.next().unwrap().unwrap().id(), third, "it has no such limit");
    });
}

#[test]
fn batch_descriptor_reports_woken_tasks() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("tasks", move || {
        let batch = client.batch(BatchOptions::default());
        let fd = batch.fd().unwrap();
        let waker = batch.task_waker(7);
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert!(is_readable(&fd, Duration::ZERO));
        assert_eq!(batch.woken_tasks(), [7], "each task is named once");
        assert!(!is_readable(&fd, Duration::ZERO) && batch.woken_tasks().is_empty());

        batch.submit(client.get(origin.url("/small/1")).build().unwrap());
        assert!(is_readable(&fd, Duration::from_secs(9)));
        waker.wake_by_ref();
        assert!(batch.try_next().is_some());
        assert!(is_readable(&fd, Duration::ZERO), "the task was not taken yet");
        assert_eq!(batch.woken_tasks(), [7]);
        assert!(!is_readable(&fd, Duration::ZERO));

        let mut sent = Box::pin(client.get(origin.url("/small/2")).send_async());
        let mut context = std::task::Context::from_waker(&waker);
        let response = loop {
            if let std::task::Poll::Ready(response) = sent.as_mut().poll(&mut context) {
                break response.unwrap();
            }
            assert!(is_readable(&fd, Duration::from_secs(9)));
            batch.woken_tasks();
        };
        assert_eq!(response.status(), 200);
        drop(batch);
        waker.wake();
    });
}

#[test]
fn pool_limits_apply_to_idle_batch_connections() {
    const REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let origin = start_origin();
    with_time_limit("limits", move || {
        let (all, none) = (PoolLimits::default(), PoolLimits { connections: 0, ..PoolLimits::default() });
        let client = Client::builder().pool(none).build();
        let get = |_| client.get(&origin.url("/small")).build().unwrap();
        let options = BatchOptions { max_parallel: 2, ..BatchOptions::default() };
        assert!(client.fetch_all((0..6).map(get), options).all(|(_, reply)| reply.is_ok()));
        assert_eq!(origin.connections(), 6);

        for limits in [PoolLimits { connections: 1, ..all }, PoolLimits { per_key: 1, ..all }] {
            let peer = H1Peer::always(vec![
                ScriptStep::ReadHead,
                ScriptStep::Await(1),
                ScriptStep::send(REPLY),
                ScriptStep::ReadToEnd,
            ]);
            let client = Client::builder().pool(limits).build();
            let batch = client.batch(BatchOptions::default());
            for _ in 0..4 {
                batch.submit(client.get(&peer.url("/")).build().unwrap());
            }
            assert!((0..4).all(|i| peer.saw(i, b"\r\n\r\n")));
            peer.release();
            while let Some(finished) = batch.next().unwrap() {
                assert_eq!(finished.into_reply().unwrap().body, b"ok");
            }
            assert!(peer.finished(3), "{limits:?}");
        }

        let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(REPLY), ScriptStep::ReadToEnd]);
        let client = Client::builder().pool(PoolLimits { idle: Duration::from_millis(100), ..all }).build();
        let batch = client.batch(BatchOptions::default());
        for connections in 1..=2 {
            batch.submit(client.get(&peer.url("/")).build().unwrap());
            assert!(batch.next().unwrap().unwrap().into_reply().is_ok());
            assert!(peer.finished(connections), "it is closed though nothing is asked for");
        }
    });
}

#[test]
fn close_idle_closes_idle_batch_connections() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("closing", move || {
        let batch = client.batch(BatchOptions::default());
        for connections in 1..=20 {
            batch.submit(client.get(&origin.url("/small")).build().unwrap());
            assert!(batch.next().unwrap().unwrap().into_reply().is_ok());
            assert_eq!(origin.connections(), connections);
            client.close_idle();
        }
        let peer = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            ScriptStep::ReadToEnd,
        ]);
        batch.submit(client.get(&peer.url("/")).build().unwrap());
        assert!(batch.next().unwrap().unwrap().into_reply().is_ok());
        client.close_idle();
        assert!(peer.finished(1), "it is closed though nothing is asked for");
    });
}

#[test]
#[cfg(target_os = "linux")]
fn library_threads_block_signals() {
    let (client, peer) = (Client::new(), H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]));
    let batch = client.batch(BatchOptions::default());
    batch.submit(client.get(&peer.url("/")).build().unwrap());
    assert!(peer.saw(0, b"\r\n\r\n"));
    let mut deaf = BTreeSet::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        // Threads of other tests may end meanwhile.
        let Ok(status) = std::fs::read_to_string(task.unwrap().path().join("status")) else { continue };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let name = field("Name:");
        if name.starts_with("haul-") {
            let blocked = u64::from_str_radix(field("SigBlk:"), 16).unwrap();
            for signal in [libc::SIGALRM, libc::SIGCHLD, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
                assert_ne!(blocked >> (signal - 1) & 1, 0, "{name} takes {signal}");
            }
            deaf.insert(name.to_owned());
        }
    }
    assert!(deaf.contains("haul-batch"), "{deaf:?}");
}
