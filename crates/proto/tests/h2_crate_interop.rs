//! Tests the HTTP/2 machine with the server of the `h2` crate, over an in-memory pipe: each
//! implementation reads the frames and compressed fields of the other.

use bytes::Bytes;
use h2::server::{SendResponse, handshake};
use haul_proto::h2::{
    BodyLength, CloseReason, ErrorCode, H2Config, H2Error, H2Event, H2Machine, RequestHead, RequestId,
};
use haul_proto::time::MonotonicTimestamp;
use std::collections::BTreeMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

fn request<'a>(method: &'a str, path: &'a str, body: BodyLength) -> RequestHead<'a> {
    RequestHead {
        method,
        scheme: "https",
        authority: "example.org",
        target: path,
        fields: &[("User-Agent", b"haul"), ("Accept", b"*/*")],
        body,
        expect_continue: false,
        http10: false,
        sensitive: &[],
    }
}

#[derive(Default, Debug, PartialEq, Eq)]
struct ServedResponse {
    status: u16,
    fields: String,
    body: Vec<u8>,
    trailers: Option<Vec<u8>>,
    complete: bool,
    retryable: bool,
}

/// An in-memory HTTP/2 client: a connection, the bodies that are still to send, and the responses
/// received.
struct MemoryClient {
    conn: H2Machine,
    uploads: BTreeMap<RequestId, (Vec<u8>, usize)>,
    answers: BTreeMap<RequestId, ServedResponse>,
    asked: usize,
}

impl MemoryClient {
    fn new(config: H2Config) -> MemoryClient {
        MemoryClient { conn: H2Machine::new(config), uploads: BTreeMap::new(), answers: BTreeMap::new(), asked: 0 }
    }

    fn ask(&mut self, request: &RequestHead<'_>) -> RequestId {
        let id = self.conn.enqueue(MonotonicTimestamp(0), request).expect("a valid request");
        self.asked += 1;
        id
    }

    /// Passes as many bytes of the request bodies to the connection as the flow-control windows
    /// allow.
    fn upload(&mut self) {
        for (&id, (body, at)) in &mut self.uploads {
            while self.conn.body_credit(id).is_some_and(|credit| credit > 0) && *at < body.len() {
                *at += self.conn.send_body(id, &body[*at..]).expect("a body is expected");
            }
            if *at == body.len() && self.conn.body_credit(id).is_some() {
                self.conn.finish_body(id, &[("X-Sum", b"42")]).expect("the end of a body");
            }
        }
    }

    /// Exchanges bytes with the server until every request is answered. The client reads at most
    /// `piece` bytes at a time.
    async fn run(&mut self, pipe: &mut DuplexStream, piece: usize) -> Result<(), H2Error> {
        let (mut from, mut to) = split(pipe);
        let mut buffer = vec![0; piece];
        loop {
            self.upload();
            let output = self.conn.output().to_vec();
            let over = self.answers.values().filter(|answer| answer.complete || answer.retryable).count();
            if output.is_empty() && over == self.asked {
                return Ok(());
            }
            // A full pipe must not keep us from reading, or both ends would wait for ever.
            tokio::select! {
                taken = to.write(&output), if !output.is_empty() => {
                    self.conn.advance_output(taken.expect("an open pipe"));
                }
                got = from.read(&mut buffer) => match got.expect("an open pipe") {
                    0 => return Err(self.conn.end_of_input()),
                    got => self.hear(&mut buffer[..got])?,
                },
            }
        }
    }

    fn hear(&mut self, mut input: &mut [u8]) -> Result<(), H2Error> {
        loop {
            let step = self.conn.step(MonotonicTimestamp(0), input)?;
            if let Some(id) = step.event.id() {
                let answer = self.answers.entry(id).or_default();
                match step.event {
                    H2Event::Head { head, .. } => {
                        answer.status = head.status();
                        answer.fields = String::from_utf8_lossy(head.raw()).into_owned();
                    }
                    H2Event::Body { range, .. } => {
                        self.conn.release(MonotonicTimestamp(0), id, range.len() as u64);
                        answer.body.extend_from_slice(&input[range]);
                    }
                    H2Event::Complete { trailers, .. } => {
                        answer.complete = true;
                        answer.trailers = trailers.map(|trailers| trailers.raw().to_vec());
                    }
                    H2Event::Reset { retryable, .. } => answer.retryable = retryable,
                    _ => {}
                }
            } else if step.event == H2Event::NeedInput {
                return Ok(());
            }
            input = &mut input[step.consumed..];
        }
    }
}

/// Answers a request as the server does: `/N` with N bytes, 8 KiB at a time; a POST with the
/// request's own body and trailers; `/refuse` with a reset.
async fn answer(request: http::Request<h2::RecvStream>, mut respond: SendResponse<Bytes>) {
    let path = request.uri().path().to_owned();
    assert_eq!(request.uri().authority().map(|authority| authority.as_str()), Some("example.org"));
    assert_eq!(request.headers()["user-agent"], "haul");
    if path == "/refuse" {
        respond.send_reset(h2::Reason::REFUSED_STREAM);
        return;
    }
    let mut body = Vec::new();
    let mut trailers = None;
    if request.method() == "POST" {
        let mut stream = request.into_body();
        while let Some(data) = stream.data().await {
            let data = data.expect("a body");
            stream.flow_control().release_capacity(data.len()).expect("a released body");
            body.extend_from_slice(&data);
        }
        trailers = stream.trailers().await.expect("trailers");
    } else {
        body.resize(path[1..].parse().expect("a length"), b'x');
    }
    let response = http::Response::builder()
        .header("server", "h2")
        .header("x-path", &path)
        .header("set-cookie", "a=b; Path=/; HttpOnly")
        .header("content-length", body.len())
        .body(())
        .expect("a response");
    let mut send = respond.send_response(response, body.is_empty() && trailers.is_none()).expect("a head");
    if body.is_empty() && trailers.is_none() {
        return;
    }
    for part in body.chunks(8 * 1024) {
        send.send_data(Bytes::copy_from_slice(part), false).expect("a body");
    }
    match trailers {
        Some(trailers) => send.send_trailers(trailers).expect("trailers"),
        None => send.send_data(Bytes::new(), true).expect("the end"),
    }
}

/// Serves requests until the client closes the connection. Sends GOAWAY after `goodbye_after`
/// requests.
async fn serve(pipe: DuplexStream, goodbye_after: usize) {
    let mut connection = handshake(pipe).await.expect("a handshake");
    let mut served = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond));
        served += 1;
        if served == goodbye_after {
            connection.graceful_shutdown();
        }
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

#[test]
fn parallel_gets_from_the_h2_crate_complete() {
    run(async {
        let (mut pipe, server) = duplex(20_000);
        tokio::spawn(serve(server, usize::MAX));
        let mut client = MemoryClient::new(H2Config::default());
        let lengths: Vec<usize> = (0..100).map(|number| number * number * 13).collect();
        let ids: Vec<RequestId> =
            lengths.iter().map(|length| client.ask(&request("GET", &format!("/{length}"), BodyLength::None))).collect();
        client.run(&mut pipe, 3_001).await.expect("all answers");
        for (id, length) in ids.iter().zip(lengths) {
            let answer = &client.answers[id];
            assert!(answer.complete);
            assert_eq!((answer.status, answer.body.len()), (200, length));
            assert!(answer.body.iter().all(|&byte| byte == b'x'));
            assert!(answer.fields.contains(&format!("x-path: /{length}\r\n")), "{}", answer.fields);
        }
        assert!(client.conn.is_idle());
    });
}

#[test]
fn sequential_requests_to_the_h2_crate_complete() {
    run(async {
        let (mut pipe, server) = duplex(20_000);
        tokio::spawn(serve(server, usize::MAX));
        let mut client = MemoryClient::new(H2Config { connection_window: 1, ..H2Config::default() });
        for number in 0..50 {
            let id = client.ask(&request("GET", &format!("/{}", number * 5_000), BodyLength::None));
            client.run(&mut pipe, 65_536).await.expect("an answer");
            assert_eq!(client.answers[&id].body.len(), number * 5_000);
        }
    });
}

#[test]
fn uploads_with_trailers_to_the_h2_crate_complete() {
    run(async {
        let (mut pipe, server) = duplex(20_000);
        tokio::spawn(serve(server, usize::MAX));
        let mut client = MemoryClient::new(H2Config::default());
        for (number, length) in [0, 1, 16_384, 65_535, 65_536, 500_000].into_iter().enumerate() {
            let body: Vec<u8> = (0..length).map(|place: u32| (place % 251) as u8).collect();
            let known = BodyLength::Known(u64::from(length));
            let framing = if number % 2 == 0 { BodyLength::Chunked } else { known };
            let id = client.ask(&request("POST", "/echo", framing));
            client.uploads.insert(id, (body, 0));
        }
        client.run(&mut pipe, 4_096).await.expect("all answers");
        for (number, (id, answer)) in client.answers.iter().enumerate() {
            assert!(answer.complete && answer.body == client.uploads[id].0, "{id:?}");
            let sum = Some(b"x-sum: 42\r\n\r\n".to_vec());
            assert_eq!(answer.trailers, if number % 2 == 0 { sum } else { None }, "{id:?}");
        }
    });
}

#[test]
fn refused_h2_requests_do_not_affect_others() {
    run(async {
        let (mut pipe, server) = duplex(20_000);
        let serving = tokio::spawn(serve(server, 3));
        let mut client = MemoryClient::new(H2Config::default());
        let refused = client.ask(&request("GET", "/refuse", BodyLength::None));
        let others = [1, 2].map(|length| client.ask(&request("GET", &format!("/{length}"), BodyLength::None)));
        client.run(&mut pipe, 1_000).await.expect("all answers");
        assert!(client.answers[&refused].retryable);
        assert_eq!(others.map(|id| client.answers[&id].body.len()), [1, 2]);
        while client.conn.close_reason().is_none() {
            let mut buffer = [0; 1_000];
            let got = pipe.read(&mut buffer).await.expect("an open pipe");
            client.hear(&mut buffer[..got]).expect("a goodbye");
            pipe.write_all(client.conn.output()).await.expect("an open pipe");
            client.conn.advance_output(client.conn.output().len());
        }
        assert_eq!(client.conn.close_reason(), Some(CloseReason::GoAway(ErrorCode::NO_ERROR)));
        drop(pipe);
        serving.await.expect("the server ends");
    });
}
