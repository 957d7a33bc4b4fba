//! Tests of request bodies that readers and streams produce while they are sent. Other requests
//! must not be delayed.

use crate::common;

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::mpsc as blocking;
use std::task::{Context, Poll};
use std::time::Duration;

use common::{PanickingContent, http2_origin, start_origin, with_prior_knowledge, with_time_limit};
use futures_core::Stream;
use haul::batch::{BatchOptions, BatchOrder};
use haul::body::upload::{BodyPiece, OneShotSource, RepeatableSource, RequestBody};
use haul::{Client, ErrorKind, RequestOptions};
use testkit::frames::{H2Peer, data, headers};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::unused_port::unused_port;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A reader of the pieces in a channel. A read blocks until the channel has a piece.
struct ChannelReader(blocking::Receiver<Vec<u8>>);

impl Read for ChannelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.0.recv().unwrap_or_default();
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// A stream of the values from a channel. It ends when all senders are dropped.
struct ChannelStream(UnboundedReceiver<io::Result<Vec<u8>>>);

impl Stream for ChannelStream {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// Returns an origin and matching request options for each protocol: HTTP/1.1, and HTTP/2 with one
/// shared connection.
fn clients() -> [(Origin, RequestOptions); 2] {
    [(start_origin(), RequestOptions::default()), (http2_origin(100), with_prior_knowledge(RequestOptions::default()))]
}

fn client(of: &RequestOptions) -> Client {
    let of = of.clone();
    Client::builder().options(move |options| *options = of).build()
}

/// Runs a test with a new client for each protocol: HTTP/1.1 and HTTP/2.
fn in_both_versions(what: &'static str, test: impl AsyncFn(&Client, &Origin) + Copy + Send + 'static) {
    for (origin, options) in clients() {
        with_time_limit(what, move || run(test(&client(&options), &origin)));
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn blocking_reader_does_not_delay_other_requests() {
    in_both_versions("a slow reader", async |client, origin| {
        let (send, pieces) = blocking::channel();
        let post =
            tokio::spawn(client.post(&origin.url("/echo")).body_reader(ChannelReader(pieces), None).send_async());
        for n in 0..3 {
            let text = client.get(&origin.url(&format!("/small/{n}"))).send_async().await.unwrap().text().await;
            assert_eq!(text.unwrap(), format!("small {n}\n"));
            send.send(format!("<{n}>").into_bytes()).unwrap();
        }
        drop(send);
        let echo: serde_json::Value = post.await.unwrap().unwrap().json().await.unwrap();
        assert_eq!((echo["body"].as_str(), echo["method"].as_str()), (Some("<0><1><2>"), Some("POST")));
    });
}

#[test]
fn stream_pieces_are_sent_as_they_arrive() {
    in_both_versions("a stream", async |client, origin| {
        let (send, pieces) = unbounded_channel();
        let post =
            tokio::spawn(client.post(&origin.url("/echo")).body_stream(ChannelStream(pieces), None).send_async());
        let large = origin.pattern().slice(0, 300_000).iter().map(|byte| b'a' + byte % 26).collect::<Vec<_>>();
        for piece in [&b"first "[..], b"", &large, b" last"] {
            client.get(&origin.url("/small")).send_async().await.unwrap().bytes().await.unwrap();
            send.send(Ok(piece.to_vec())).unwrap();
        }
        drop(send);
        let echo: serde_json::Value = post.await.unwrap().unwrap().json().await.unwrap();
        assert_eq!(echo["body_len"], 6 + 300_000 + 5);
        let whole = [b"first ", &large[..], b" last"].concat();
        assert!(echo["body"].as_str().unwrap().as_bytes() == whole);
    });
}

#[test]
fn blocking_send_accepts_a_stream_body() {
    let origin = start_origin();
    with_time_limit("a stream, waited for", move || {
        let (send, pieces) = unbounded_channel();
        let feeder = std::thread::spawn(move || {
            for n in 0..5 {
                std::thread::sleep(Duration::from_millis(2));
                send.send(Ok(vec![b'0' + n])).unwrap();
            }
        });
        let response =
            Client::new().put(&origin.url("/echo")).body_stream(ChannelStream(pieces), Some(5)).send().unwrap();
        let echo: serde_json::Value = response.json().unwrap();
        assert_eq!(echo["body"], "01234");
        let length = echo["headers"].as_array().unwrap().iter().find(|field| field[0] == "content-length").unwrap();
        assert_eq!(length[1], "5");
        feeder.join().unwrap();
    });
}

#[test]
fn stream_longer_or_shorter_than_its_length_fails() {
    in_both_versions("content that is too long", async |client, origin| {
        let url = origin.url("/echo");
        for pieces in [&["abcd"][..], &["abc", "d"], &["a", "bcd"], &["abc", "", "d"], &["ab"]] {
            for awaited in [true, false] {
                let stream = given(pieces);
                let post = client.post(&url).body_stream(stream, Some(3));
                let error = if awaited {
                    post.send_async().await.unwrap_err()
                } else {
                    let mut batch = client.fetch_all([post.build().unwrap()], BatchOptions::default());
                    batch.next().unwrap().1.unwrap_err()
                };
                assert_eq!(error.kind(), ErrorKind::Read, "{pieces:?}: {error}");
            }
        }
        let text = client.post(&url).body_stream(given(&["ab", "c", ""]), Some(3)).send_async().await.unwrap();
        assert!(text.text().await.unwrap().contains("\"abc\""));
        let (mut reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"abcdef").unwrap();
        let post = client.post(&url).body_reader(reader.try_clone().unwrap(), Some(3)).send_async().await.unwrap();
        assert!(post.text().await.unwrap().contains("\"abc\""));
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "def");
    });
}

fn given(pieces: &[&str]) -> ChannelStream {
    let (send, stream) = unbounded_channel();
    for piece in pieces {
        send.send(Ok(piece.as_bytes().to_vec())).unwrap();
    }
    ChannelStream(stream)
}

#[test]
fn failing_upload_source_fails_only_its_request() {
    in_both_versions("sources that fail", async |client, origin| {
        let url = origin.url("/echo");
        let (send, pieces) = unbounded_channel();
        send.send(Ok(b"some".to_vec())).unwrap();
        send.send(Err(io::Error::other("no more"))).unwrap();
        let error = client.post(&url).body_stream(ChannelStream(pieces), None).send_async().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Read);
        assert!(format!("{:?}", anyhow(&error)).contains("no more"), "{error}");
        let error = client.post(&url).body_reader(PanickingContent, None).send_async().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked, "{error}");
        let short = &b"short"[..];
        let error = client.post(&url).body_reader(short, Some(10)).send_async().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Read, "{error}");
        let text = client.post(&url).body_reader(short, Some(5)).send_async().await.unwrap().text().await.unwrap();
        assert!(text.contains("\"short\""), "{text}");
    });
}

/// A stream of a number of pieces, with a tokio sleep before each piece. It works only in a tokio
/// runtime.
struct TimedStream(u8, Option<Pin<Box<tokio::time::Sleep>>>);

impl Stream for TimedStream {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        let wait = self.1.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_millis(2))));
        std::task::ready!(wait.as_mut().poll(context));
        self.1 = None;
        self.0 -= 1;
        Poll::Ready(Some(Ok(vec![b'x'; 100_000])))
    }
}

#[test]
fn stream_may_use_the_awaiting_tasks_runtime() {
    in_both_versions("a stream of tokio's", async |client, origin| {
        let url = origin.url("/echo");
        let echo: serde_json::Value =
            client.post(&url).body_stream(TimedStream(5, None), None).send_async().await.unwrap().json().await.unwrap();
        assert_eq!(echo["body_len"], 500_000);
        // A body that was not read yet can be used by another request.
        let body = RequestBody::stream(TimedStream(3, None));
        let error = client
            .post(&format!("http://127.0.0.1:{}/", unused_port()))
            .body(body.clone())
            .send_async()
            .await
            .unwrap_err();
        assert!(error.is_connect(), "{error}");
        let echo: serde_json::Value = client.post(&url).body(body).send_async().await.unwrap().json().await.unwrap();
        assert_eq!(echo["body_len"], 300_000);
    });
}

#[test]
fn panicking_stream_fails_only_its_request() {
    let origin = start_origin();
    with_time_limit("a stream that panics", move || {
        let client = Client::new();
        run(async {
            let (send, pieces) = unbounded_channel();
            let post =
                tokio::spawn(client.post(&origin.url("/echo")).body_stream(ChannelStream(pieces), None).send_async());
            send.send(Ok(b"first".to_vec())).unwrap();
            let error =
                client.post(&origin.url("/echo")).body_stream(PanickingContent, None).send_async().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Panicked, "{error}");
            drop(send);
            assert_eq!(post.await.unwrap().unwrap().status(), 200);
        });
        let get = || client.get(&origin.url("/delay/300/small"));
        let panics = client.post(&origin.url("/echo")).body_stream(PanickingContent, None);
        let replies = client.fetch_all([get(), panics, get()].map(|one| one.build().unwrap()), BatchOptions::default());
        let ended: Vec<_> = replies.map(|(_, reply)| reply.err().map(|error| error.kind())).collect();
        assert_eq!(ended, [None, Some(ErrorKind::Panicked), None]);
    });
}

/// Returns the messages of an error and of all its causes, the outermost first.
fn anyhow(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
}

#[test]
fn abandoned_upload_does_not_wait_for_its_reader() {
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::ReadToEnd]);
    with_time_limit("giving up", move || {
        run(async {
            let client = Client::new();
            let (_send, pieces) = blocking::channel();
            let post = client.post(&peer.url("/")).body_reader(ChannelReader(pieces), None).send_async();
            assert!(tokio::time::timeout(Duration::from_millis(50), post).await.is_err());
            let (_send, pieces) = blocking::channel();
            let post =
                client.post(&peer.url("/")).body_reader(ChannelReader(pieces), None).timeout(Duration::from_millis(50));
            assert!(post.send_async().await.unwrap_err().is_timeout());
            assert!(peer.finished(2));
        });
    });
}

#[test]
fn rate_limited_upload_does_not_delay_other_requests() {
    for (origin, options) in clients() {
        with_time_limit("a rate", move || {
            let paced = client(&RequestOptions { limit_rate: Some(64_000), ..options.clone() });
            let free = client(&options);
            let url = |client: &Client, path: &str| client.get(&origin.url(path)).build().unwrap();
            let posts = (0..3).map(|_| paced.post(&origin.url("/echo")).body(vec![b'x'; 20_000]).build().unwrap());
            let gets = (0..20).map(|_| url(&free, "/small"));
            let all: Vec<_> = posts.chain(gets).collect();
            let in_turn = BatchOptions { order: BatchOrder::Completion, max_parallel: 30, ..BatchOptions::default() };
            let ended: Vec<u64> = free
                .fetch_all(all, in_turn)
                .map(|(index, reply)| {
                    assert!(reply.unwrap().status() == 200);
                    index
                })
                .collect();

            assert!(ended[20..].iter().all(|index| *index < 3), "the posts are the last: {ended:?}");
        });
    }
}

#[test]
fn one_shot_stream_body_is_not_sent_twice() {
    let origin = start_origin();
    with_time_limit("once", move || {
        run(async {
            let client = Client::new();
            let (send, pieces) = unbounded_channel();
            send.send(Ok(b"once".to_vec())).unwrap();
            drop(send);
            let url = origin.url("/redirect/307?to=/echo");
            let error =
                client.post(&url).body(RequestBody::stream(ChannelStream(pieces))).send_async().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Rewind, "{error}");
        });
    });
}

#[test]
fn one_shot_body_is_sent_within_http2_stream_limit() {
    let origin = http2_origin(1);
    with_time_limit("one stream", move || {
        let client = client(&with_prior_knowledge(RequestOptions::default()));
        // Each new connection learns the limit again.
        for _ in 0..10 {
            let put = |n: usize| client.put(&origin.url("/echo")).body_reader(io::repeat(b'x').take(n as u64), None);
            let requests: Vec<_> = (0..6).map(|n| put(n * 1000).build().unwrap()).collect();
            for (n, reply) in client.fetch_all(requests, BatchOptions::default()) {
                assert_eq!(reply.unwrap().json::<serde_json::Value>().unwrap()["body_len"], n * 1000);
            }
            client.close_idle();
        }
    });
}

/// Returns a request body that is read from a pipe without data, and the write end of that pipe.
fn silent_pipe() -> (RequestBody, PipeWriter) {
    let (read, write) = std::io::pipe().unwrap();
    (RequestBody::pieces([BodyPiece::Once(OneShotSource::file(File::from(OwnedFd::from(read))))]), write)
}

#[test]
fn timeout_applies_while_upload_pipe_is_silent() {
    for (origin, options) in clients() {
        with_time_limit("a silent pipe", move || {
            let client = client(&options);
            let (body, mut write) = silent_pipe();
            let post = client.post(&origin.url("/echo")).timeout(Duration::from_millis(100)).body(body);
            assert!(post.send().unwrap_err().is_timeout());
            drop(write);
            let (body, other) = silent_pipe();
            write = other;
            let writer = std::thread::spawn(move || {
                for n in 0..3 {
                    std::thread::sleep(Duration::from_millis(20));
                    write.write_all(format!("<{n}>").as_bytes()).unwrap();
                }
            });
            let echo: serde_json::Value = client.post(&origin.url("/echo")).body(body).send().unwrap().json().unwrap();
            assert_eq!(echo["body"], "<0><1><2>");
            writer.join().unwrap();
        });
    }
}

#[test]
fn pipe_upload_is_whole_for_any_piece_size() {
    // The kernel sends what waits in the pipe if it is much, and haul reads it if it is little.
    for (origin, options) in clients() {
        with_time_limit("pieces of a pipe", move || {
            let client = client(&options);
            for waits_for_100 in [false, true] {
                let (body, mut write) = silent_pipe();
                let content = testkit::byte_pattern::compressible_text(7, 3_000_000);
                let expected = content.clone();
                let writer = std::thread::spawn(move || {
                    let (mut rest, mut length) = (&content[..], 1);
                    while !rest.is_empty() {
                        let (piece, after) = rest.split_at(length.min(rest.len()));
                        write.write_all(piece).unwrap();
                        rest = after;
                        length = length * 7 % 200_003;
                    }
                });
                let mut post = client.post(&origin.url("/echo")).body(body);
                if waits_for_100 {
                    post = post.header("Expect", "100-continue");
                }
                let echo: serde_json::Value = post.send().unwrap().json().unwrap();
                assert_eq!(echo["body_len"], expected.len());
                assert!(echo["body"].as_str().is_some_and(|body| body.as_bytes() == expected));
                writer.join().unwrap();
            }
        });
    }
}

#[test]
fn response_is_read_while_upload_pipe_is_silent() {
    let reply = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply)]);
    with_time_limit("an early answer", move || {
        let (body, _write) = silent_pipe();
        let response = Client::new().post(&peer.url("/")).body(body).send().unwrap();
        assert_eq!((response.status(), response.text().unwrap()), (403, "no".into()));
    });
}

/// A reader that supplies a few bytes at a time and never ends.
struct EndlessReader;

impl Read for EndlessReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        std::thread::sleep(Duration::from_millis(15));
        let piece = b"drip";
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn early_response_ends_a_slow_upload() {
    let reply = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::ReadToEnd]);
    let shared = H2Peer::start(|_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(headers(asked.stream, false, &[(":status", "401")]))?;
        conn.send(data(asked.stream, true, b"no"))?;
        conn.drain()
    });
    let ways = [
        (peer.url("/"), RequestOptions::default()),
        (shared.url("/"), with_prior_knowledge(RequestOptions::default())),
    ];
    for (url, options) in ways {
        let lengthy = || BodyPiece::Source(RepeatableSource::new(Some(1 << 40), || Ok(Box::new(EndlessReader))));
        for body in [RequestBody::reader(EndlessReader), RequestBody::pieces([lengthy()])] {
            let (url, client) = (url.clone(), client(&options));
            with_time_limit("a slow upload", move || {
                let response = client.post(&url).header("Expect", "").body(body).send().unwrap();
                assert_eq!((response.status(), response.text().unwrap()), (401, "no".into()));
            });
        }
    }
}

#[test]
fn reset_during_upload_is_a_receive_error() {
    let sent = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[b'x'; 600_000]].concat();
    // The server sends more than an unread response buffers, so the sender is the first to notice
    // the reset.
    let peer =
        H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::Send(sent), ScriptStep::Await(1), ScriptStep::Reset]);
    with_time_limit("a reset", move || {
        run(async {
            let (send, pieces) = blocking::channel();
            let post = Client::new().post(&peer.url("/")).header("Expect", "").body_reader(ChannelReader(pieces), None);
            send.send(b"first".to_vec()).unwrap();
            let response = post.send_async().await.unwrap();
            peer.release();
            assert!(peer.finished(1));
            send.send(b"second".to_vec()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            let error = response.bytes().await.map(|body| body.len()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Receive, "{error}");
        });
    });
}

#[test]
fn waiting_for_an_upload_pipe_uses_no_cpu() {
    let origin = start_origin();
    with_time_limit("sleeping", move || {
        let (body, write) = silent_pipe();
        let url = origin.url("/echo");
        let post = std::thread::spawn(move || {
            let response = Client::new().post(&url).body(body).send().unwrap();
            (response.status(), rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
        });
        std::thread::sleep(Duration::from_millis(300));
        drop(write);
        let (status, used) = post.join().unwrap();
        // One poll of a pipe takes a microsecond; a busy loop would use all of the time.
        assert!(status == 200 && used.tv_sec == 0 && used.tv_nsec < 100_000_000, "{used:?}");
    });
}
