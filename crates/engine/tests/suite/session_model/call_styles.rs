//! The different uses of the API in a random session: methods of sending a request and reading its
//! response. Also contains the runner of whole sessions.

use std::future::{Future, poll_fn};
use std::io::{self, Cursor, Read};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;

use futures_core::Stream;
use haul::batch::{BatchOptions, BatchOrder};
use haul::response::{BufferedResponse, ResponseInfo};
use haul::{AsyncResponse, Client, Error, RequestBuilder, Response};
use testkit::rng::Rng;

use crate::common::with_time_limit;
use crate::support::seeds::one_of;

/// The method of the client's API with which a request is sent and its response is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallStyle {
    /// A blocking call that waits for the complete response ([`Client::call`]).
    Call,
    /// A blocking read of at most this many bytes of the body, after which the response is dropped.
    Read(usize),
    /// An async read of at most this many bytes of the body, after which the response is dropped.
    Await(usize),
    /// An async request whose future is dropped after this many polls.
    Drop(usize),
    /// A request that is sent in a batch, together with others.
    Batch,
}

impl CallStyle {
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let limit = one_of(rng, &[usize::MAX, usize::MAX, 0, 100, 100_000]);
        match rng.below(12) {
            0 | 1 => Self::Call,
            2 | 3 => Self::Read(limit),
            4 | 5 => Self::Await(limit),
            6 => Self::Drop(1 + rng.below(3) as usize),
            _ => Self::Batch,
        }
    }
}

/// The response that a request of a session has received.
pub(crate) struct SessionResponse {
    pub(crate) status: u16,
    /// The value of the response's field `X-Number`; `None` without the field.
    pub(crate) number: Option<u64>,
    pub(crate) body: Vec<u8>,
    /// True if the body was read to its end.
    pub(crate) is_whole: bool,
}

impl SessionResponse {
    fn of(about: &ResponseInfo, body: Vec<u8>, is_whole: bool) -> Self {
        Self { status: about.status(), number: number(about.header("x-number")), body, is_whole }
    }

    fn whole(reply: BufferedResponse) -> Self {
        let field = reply.head.get("x-number").map(|field| std::str::from_utf8(field).unwrap());
        Self { status: reply.status(), number: number(field), body: reply.body, is_whole: true }
    }
}

fn number(field: Option<&str>) -> Option<u64> {
    field.map(|number| number.parse().expect("a number"))
}

/// A request body that is supplied in small pieces, as a reader or as a stream.
pub(crate) struct PiecewiseContent {
    content: Cursor<Vec<u8>>,
    /// True if the last poll of the stream returned `Pending`, so that the next poll returns a
    /// piece.
    waits: bool,
}

impl PiecewiseContent {
    pub(crate) fn of(content: Vec<u8>) -> Self {
        Self { content: Cursor::new(content), waits: false }
    }
}

impl Read for PiecewiseContent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(7_001);
        self.content.read(&mut buffer[..most])
    }
}

impl Stream for PiecewiseContent {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.waits = !self.waits;
        if self.waits {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut piece = vec![0; 7_001];
        let n = self.content.read(&mut piece)?;
        piece.truncate(n);
        Poll::Ready((n > 0).then_some(Ok(piece)))
    }
}

fn read(mut response: Response, limit: usize) -> Result<SessionResponse, Error> {
    let (mut body, mut piece) = (Vec::new(), vec![0; 20_000]);
    while body.len() < limit {
        let n = response.read(&mut piece).map_err(|error| *error.into_inner().unwrap().downcast::<Error>().unwrap())?;
        if n == 0 {
            return Ok(SessionResponse::of(&response, body, true));
        }
        body.extend_from_slice(&piece[..n]);
    }
    Ok(SessionResponse::of(&response, body, false))
}

async fn take(mut response: AsyncResponse, limit: usize) -> Result<SessionResponse, Error> {
    let mut body = Vec::new();
    while body.len() < limit {
        match response.chunk().await? {
            Some(piece) => body.extend_from_slice(&piece),
            None => return Ok(SessionResponse::of(&response, body, true)),
        }
    }
    Ok(SessionResponse::of(&response, body, false))
}

/// Polls a future at most `polls` times, and then drops it.
fn abandon(future: impl Future, mut polls: usize) {
    let mut future = pin!(future);
    pollster::block_on(poll_fn(|context| {
        polls -= 1;
        match future.as_mut().poll(context) {
            Poll::Pending if polls > 0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }));
}

/// Sends one request and reads its response in the style `way`. Returns `None` if the request was
/// dropped.
fn run_one(client: &Client, request: RequestBuilder, way: CallStyle) -> Option<Result<SessionResponse, Error>> {
    match way {
        CallStyle::Call | CallStyle::Batch => Some(client.call(request.build().unwrap()).map(SessionResponse::whole)),
        CallStyle::Read(limit) => Some(request.send().and_then(|response| read(response, limit))),
        CallStyle::Await(limit) => Some(pollster::block_on(async { take(request.send_async().await?, limit).await })),
        CallStyle::Drop(polls) => {
            abandon(request.send_async(), polls);
            None
        }
    }
}

fn run_batch(
    client: &Client,
    requests: Vec<RequestBuilder>,
    options: BatchOptions,
) -> Vec<Result<SessionResponse, Error>> {
    let requests: Vec<_> = requests.into_iter().map(|request| request.build().unwrap()).collect();
    let mut got: Vec<_> = client.fetch_all(requests, options).collect();
    got.sort_by_key(|(index, _)| *index);
    got.into_iter().map(|(_, reply)| reply.map(SessionResponse::whole)).collect()
}

pub(crate) fn a_batch(rng: &mut Rng) -> BatchOptions {
    BatchOptions {
        order: one_of(rng, &[BatchOrder::Input, BatchOrder::Completion]),
        per_host: one_of(rng, &[Some(1), Some(3), Some(10), None]),
        pipeline: one_of(rng, &[1, 2, 8]),
        memory: one_of(rng, &[1, 100_000, 64 << 20]),
        ..BatchOptions::default()
    }
}

/// One request of a random session, and the check of its response.
pub(crate) trait SessionRequest: Clone + Send + Sync + 'static {
    fn way(&self) -> CallStyle;
    fn request(&self, client: &Client) -> RequestBuilder;
    fn check(&self, got: Result<SessionResponse, Error>);
}

/// Runs the requests of a session in several threads that share the client. Each thread first sends
/// its single requests, and then the requests of its batch.
pub(crate) fn run_all(client: &Client, cases: Vec<impl SessionRequest>, threads: usize, batch: &BatchOptions) {
    let threads: Vec<_> = (0..threads)
        .map(|thread| {
            let own: Vec<_> = cases.iter().skip(thread).step_by(threads).cloned().collect();
            let (together, alone): (Vec<_>, Vec<_>) = own.into_iter().partition(|case| case.way() == CallStyle::Batch);
            let (client, batch) = (client.clone(), batch.clone());
            let work = move || {
                for case in &alone {
                    if let Some(got) = run_one(&client, case.request(&client), case.way()) {
                        case.check(got);
                    }
                }
                let requests = together.iter().map(|case| case.request(&client)).collect();
                let got = run_batch(&client, requests, batch);
                assert_eq!(got.len(), together.len());
                for (case, got) in together.iter().zip(got) {
                    case.check(got);
                }
            };
            thread::spawn(move || with_time_limit("a session", work))
        })
        .collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "see above which");
}
