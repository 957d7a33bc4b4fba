//! Tests of the async API: without a runtime and with tokio, dropped futures, limits.

use crate::common;

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{PanickingContent, http2_origin, start_origin, trusting_ca, with_time_limit};
use futures_core::Stream;
use haul::{AsyncResponse, Client, ErrorKind};
use testkit::h1_peer::{H1Peer, ScriptStep};

async fn next(response: &mut AsyncResponse) -> Option<haul::Result<Vec<u8>>> {
    std::future::poll_fn(|context| Pin::new(&mut *response).poll_next(context)).await
}

#[test]
fn async_bodies_arrive_whole_without_a_runtime() {
    let origin = start_origin();
    let (trusted, _ca) = trusting_ca(origin.ca_pem());
    let client = Client::builder().options(|options| options.tls = trusted.tls).build();
    with_time_limit("bodies", move || {
        pollster::block_on(async {
            for size in [0usize, 1, 335_114, 3_000_000] {
                let content = origin.pattern().slice(0, size);
                for path in ["bytes", "chunked", "close"] {
                    let path = format!("/{path}/{size}");
                    for url in [origin.url(&path), origin.https_url(&path)] {
                        let get = || client.get(&url).send_async();
                        assert!(get().await.unwrap().bytes().await.unwrap() == content, "{url}");
                        let mut response = get().await.unwrap();
                        assert_eq!((response.status(), response.url()), (200, url.clone()));
                        let mut got = Vec::new();
                        while let Some(piece) = next(&mut response).await {
                            got.extend(piece.unwrap());
                        }
                        assert!(got == content, "{url}");
                        assert_eq!(response.facts().body_bytes as usize, size);
                    }
                }
            }
            let text = client.get(&origin.url("/gzip/300000")).send_async().await.unwrap().text().await.unwrap();
            assert_eq!(text.len(), 300_000);
            let told = client.get(&origin.url("/redirect/302?to=/small")).send_async().await.unwrap();
            assert_eq!((told.history().len(), told.url()), (1, origin.url("/small")));
            let error = client.get("http://127.0.0.1:1/").send_async().await.unwrap_err();
            assert!(error.is_connect(), "{error}");
            assert!(client.get("nonsense://x/").send_async().await.unwrap_err().is_setup());
        });
    });
}

#[test]
fn async_requests_run_concurrently_under_tokio() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("tokio", move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let base = origin.url("");
        runtime.block_on(async move {
            let tasks: Vec<_> = (0..300)
                .map(|i| {
                    let request = client.get(&format!("{base}/delay/20/small/{i}"));
                    tokio::spawn(async move { request.send_async().await.unwrap().text().await.unwrap() })
                })
                .collect();
            for (i, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), format!("small {i}\n"));
            }
        });
        assert!(origin.peak_requests() > 20, "{}", origin.peak_requests());
    });
}

#[test]
fn dropped_future_closes_its_connection() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    for steps in [
        vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd],
        vec![ScriptStep::ReadHead, ScriptStep::send(half), ScriptStep::ReadToEnd],
    ] {
        let peer = H1Peer::always(steps);
        with_time_limit("dropping", move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let client = Client::new();
                let whole = async { client.get(&peer.url("/")).send_async().await.unwrap().bytes().await };
                let mut whole = pin!(whole);
                assert!(tokio::time::timeout(Duration::from_millis(50), whole.as_mut()).await.is_err());
                assert!(peer.saw(0, b"\r\n\r\n"));
                // `whole` is dropped here, before it completes.
            });
            assert!(peer.finished(1));
        });
    }
}

#[test]
fn unread_async_body_applies_backpressure() {
    let origin = start_origin();
    let http2 = http2_origin(10);
    let plain = Client::new();
    let knowing = Client::builder().options(|options| options.prior_knowledge = true).build();
    with_time_limit("backpressure", move || {
        for (client, url) in [(&plain, origin.url("/bytes/60000000")), (&knowing, http2.url("/bytes/60000000"))] {
            pollster::block_on(async {
                let mut response = client.get(&url).send_async().await.unwrap();
                let first = response.chunk().await.unwrap().unwrap();
                thread::sleep(Duration::from_millis(300));
                let mut held = 0;
                let waker = Waker::noop();
                // The bytes available at once, without time for the driver to refill.
                while let Poll::Ready(filled) = response.poll_fill(&mut Context::from_waker(waker)) {
                    assert!(filled.unwrap());
                    held += response.ready().len();
                    let n = response.ready().len();
                    response.consume(n);
                    if held > 20 << 20 {
                        panic!("{url}: it holds {held} bytes");
                    }
                    if held > 0 {
                        break;
                    }
                }
                let rest = response.bytes().await.unwrap().len();
                assert_eq!(first.len() + held + rest, 60_000_000);
            });
        }
        // An unread body does not stop another.
        pollster::block_on(async {
            let mut idle = plain.get(&origin.url("/bytes/60000000")).send_async().await.unwrap();
            idle.chunk().await.unwrap();
            assert_eq!(plain.get(&origin.url("/small")).send_async().await.unwrap().text().await.unwrap(), "small\n");
        });
    });
}

#[test]
fn async_bytes_before_a_failure_are_delivered_first() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(half)]);
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("failures", move || {
        pollster::block_on(async {
            let mut response = client.get(&peer.url("/")).send_async().await.unwrap();
            assert_eq!(response.chunk().await.unwrap().as_deref(), Some(&b"half"[..]));
            assert!(response.chunk().await.unwrap_err().is_connection());
            assert!(response.chunk().await.unwrap_err().is_connection(), "it has no end");
            let content = vec![b'x'; 3_000_000];
            let reader = std::io::Cursor::new(content.clone());
            client
                .put(&origin.url("/echo"))
                .body_reader(reader, None)
                .send_async()
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap();
            assert!(origin.log().pop().unwrap().body == content);
        });
    });
}

#[test]
fn panicking_body_fails_only_its_async_request() {
    let origin = start_origin();
    let client = Client::new();
    with_time_limit("panics", move || {
        pollster::block_on(async {
            let url = origin.url("/echo");
            for i in 0..4 {
                let post = client.post(&url);
                let post = if i % 2 == 0 {
                    post.body_reader(PanickingContent, Some(5))
                } else {
                    post.body_stream(PanickingContent, Some(5))
                };
                let error = post.send_async().await.unwrap_err();
                assert_eq!((error.kind(), error.url()), (ErrorKind::Panicked, Some(&*url)));
                assert!(!error.is_setup(), "it may have been sent");
                let text = client.get(&origin.url("/small")).send_async().await.unwrap().text().await.unwrap();
                assert_eq!(text, "small\n");
            }
        });
    });
}

/// Starts a server that answers every request with a 503 and a Retry-After of one hour.
fn server_asking_for_a_pause() -> H1Peer {
    let reply = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd])
}

#[test]
fn async_timeout_includes_retry_after_pause() {
    let peer = server_asking_for_a_pause();
    let client = Client::builder().options(|options| options.retry.max = 1).build();
    with_time_limit("pause", move || {
        pollster::block_on(async {
            // A POST is not retried.
            let told = client.post(&peer.url("/")).send_async().await.unwrap();
            assert_eq!(told.status(), 503);
            told.bytes().await.unwrap();
            let url = peer.url("/later");
            for limit in [300, 100] {
                let later = client.get(&url).timeout(Duration::from_millis(limit)).send_async();
                let error = later.await.unwrap_err();
                assert_eq!((error.kind(), error.url()), (ErrorKind::Timeout, Some(&*url)));
            }
            assert_eq!(peer.connections(), 1);
        });
    });
}

#[test]
fn async_timeout_includes_waiting_for_max_requests() {
    let silent = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
    let origin = start_origin();
    let client = Client::builder().max_requests(1).build();
    with_time_limit("places", move || {
        pollster::block_on(async {
            let mut first = pin!(client.get(&silent.url("/")).send_async());
            assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(silent.saw(0, b"\r\n\r\n"));
            let small = origin.url("/small");
            let mut unlimited = pin!(client.get(&small).send_async());
            assert!(unlimited.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            for limit in [300, 100] {
                let error = client.get(&small).timeout(Duration::from_millis(limit)).send_async().await.unwrap_err();
                assert_eq!((error.kind(), error.url()), (ErrorKind::Timeout, Some(&*small)));
            }
            assert_eq!(origin.requests(), 0);
            first.set(client.get(&small).send_async());
            assert_eq!(unlimited.await.unwrap().text().await.unwrap(), "small\n");
            assert_eq!(first.await.unwrap().text().await.unwrap(), "small\n");
        });
    });
}

#[test]
fn dropped_client_closes_idle_connections_at_once() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
    let peer = H1Peer::start(vec![
        vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}body")), ScriptStep::ReadToEnd],
        vec![
            ScriptStep::ReadHead,
            ScriptStep::send(head),
            ScriptStep::Await(1),
            ScriptStep::send("body"),
            ScriptStep::ReadToEnd,
        ],
    ]);
    with_time_limit("dropping", move || {
        // An idle executor waits 5 s for more requests.
        let client = Client::new();
        let response = pollster::block_on(client.get(&peer.url("/")).send_async()).unwrap();
        assert_eq!(pollster::block_on(response.bytes()).unwrap(), b"body");
        let idle = Instant::now();
        drop(client);
        assert!(peer.finished(1) && idle.elapsed() < Duration::from_secs(4));

        let client = Client::new();
        let other = client.clone();
        let response = pollster::block_on(client.get(&peer.url("/")).send_async()).unwrap();
        drop((client, other));
        peer.release();
        assert_eq!(pollster::block_on(response.bytes()).unwrap(), b"body", "what is under way goes on");
        let idle = Instant::now();
        assert!(peer.finished(2) && idle.elapsed() < Duration::from_secs(4));
    });
}
