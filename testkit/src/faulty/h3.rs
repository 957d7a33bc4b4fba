//! The fault origin over HTTP/3 (RFC 9114), by quinn and the crate h3. A break that resets or
//! closes a TCP connection closes the QUIC connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use bytes::Bytes;
use h3::error::{Code, ConnectionError, StreamError};
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::BidiStream;
use hyper::http::response::Builder;
use hyper::{Method, Request, Response};
use quinn::{Connection, VarInt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::faulty_body_sender::{BodySender, SendStep};
use super::plan::BreakKind;
use super::reply_choice::{FaultyResource, PlannedReply, PlannedReplyBody};
use super::request::FaultyOriginRequest;
use super::serve::FaultyOriginState;
use crate::http3::QuicListener;

type FaultyStream = RequestStream<BidiStream<Bytes>, Bytes>;

/// An order to send GOAWAY, for the task of a connection. The order is a sender by which the task
/// reports that the frame was written.
type GoAwayOrder = oneshot::Sender<()>;

/// Accepts connections until the listener is closed, and serves each connection in its own task.
pub(super) async fn accept(listener: Arc<QuicListener>, shared: Arc<FaultyOriginState>) {
    let open = Arc::new(AtomicUsize::new(0));
    while let Some(incoming) = listener.accept().await {
        let number = shared.accepted.fetch_add(1, SeqCst);
        if shared.limit.is_some_and(|most| open.load(SeqCst) >= most) {
            incoming.refuse();
            continue;
        }
        open.fetch_add(1, SeqCst);
        let (listener, shared, open) = (listener.clone(), shared.clone(), open.clone());
        tokio::spawn(async move {
            if let Some(connection) = listener.handshake(incoming).await {
                // A client that disconnects is the point of many tests.
                let _ = serve(&connection, &listener, number, &shared).await;
                connection.closed().await;
            }
            open.fetch_sub(1, SeqCst);
        });
    }
}

async fn serve(
    connection: &Connection,
    listener: &QuicListener,
    number: u64,
    shared: &Arc<FaultyOriginState>,
) -> Result<(), ConnectionError> {
    let quic = h3_quinn::Connection::new(connection.clone());
    let mut session = h3::server::builder().build::<_, Bytes>(quic).await?;
    let (sender, mut orders) = unbounded_channel();
    loop {
        tokio::select! {
            accepted = session.accept() => {
                let Some(request) = accepted? else { return Ok(()) };
                if listener.settings().has_key_updates() {
                    connection.force_key_update();
                }
                let exchange = FaultyExchange {
                    connection: connection.clone(),
                    number,
                    shared: shared.clone(),
                    orders: sender.clone(),
                };
                tokio::spawn(async move { exchange.run(request).await });
            }
            Some(written) = orders.recv() => {
                // GOAWAY names the first stream that is refused; with 0 it would be the last
                // accepted one.
                session.shutdown(1).await?;
                // The request may have ended meanwhile.
                let _ = written.send(());
            }
        }
    }
}

/// A request on one HTTP/3 stream, and its response.
struct FaultyExchange {
    connection: Connection,
    number: u64,
    shared: Arc<FaultyOriginState>,
    orders: UnboundedSender<GoAwayOrder>,
}

impl FaultyExchange {
    async fn run(&self, request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), StreamError> {
        let (request, mut stream): (_, FaultyStream) = request.resolve_request().await?;
        let request = range_request(&request);
        // quinn would send STOP_SENDING for a request that is not read to its end.
        while stream.recv_data().await?.is_some() {}
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let resource = match path.strip_prefix("/f/").map(|name| self.shared.resource(name, query)) {
            Some(Ok(resource)) => resource,
            Some(Err(_)) => return send_head(&mut stream, "HTTP/1.1 400 Bad Request", true).await,
            None => return send_head(&mut stream, "HTTP/1.1 404 Not Found", true).await,
        };
        match resource.answer(&request, self.number) {
            PlannedReply::Reset => {
                stream.stop_sending(Code::H3_REQUEST_REJECTED);
                stream.stop_stream(Code::H3_REQUEST_REJECTED);
                Ok(())
            }
            PlannedReply::Empty { head } => send_head(&mut stream, &head, true).await,
            PlannedReply::Body { head, send } => {
                let sent = match send_head(&mut stream, &head, false).await {
                    Ok(()) => self.send_body(&mut stream, &resource, send).await,
                    failed => failed,
                };
                resource.on_body_end();
                sent
            }
        }
    }

    async fn send_body(
        &self,
        stream: &mut FaultyStream,
        resource: &Arc<FaultyResource>,
        send: PlannedReplyBody,
    ) -> Result<(), StreamError> {
        let mut sending = BodySender::new(resource, send, false);
        loop {
            let mut bytes = Vec::new();
            let step = sending.step(&mut bytes);
            match step {
                SendStep::Piece(from) if from > Instant::now() => tokio::time::sleep_until(from.into()).await,
                SendStep::Piece(_) | SendStep::Last => {}
                SendStep::Break(BreakKind::Stall) => match resource.plan.stall {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                },
                SendStep::Break(BreakKind::Rst) => {
                    stream.stop_stream(Code::H3_INTERNAL_ERROR);
                    return Ok(());
                }
                SendStep::Break(BreakKind::Reset) => close(&self.connection, Code::H3_INTERNAL_ERROR),
                SendStep::Break(BreakKind::Close) => close(&self.connection, Code::H3_NO_ERROR),
                SendStep::Break(BreakKind::GoAway) => self.go_away().await,
                SendStep::Break(BreakKind::GoAwayCut) => {
                    self.go_away().await;
                    close(&self.connection, Code::H3_INTERNAL_ERROR);
                }
            }
            if !bytes.is_empty() {
                stream.send_data(bytes.into()).await?;
            }
            if let SendStep::Last = step {
                return stream.finish().await;
            }
        }
    }
}

impl FaultyExchange {
    /// Sends GOAWAY for the whole connection, and waits until it was written. The connection then
    /// accepts no more requests.
    async fn go_away(&self) {
        let (written, is_written) = oneshot::channel();
        // Both fail only if the connection has ended.
        let _ = self.orders.send(written);
        let _ = is_written.await;
    }
}

fn close(connection: &Connection, code: Code) {
    connection.close(VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX), b"");
}

fn range_request(request: &Request<()>) -> FaultyOriginRequest {
    let field = |name: &str| request.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into());
    FaultyOriginRequest {
        head_only: request.method() == Method::HEAD,
        target: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
        range: field("range"),
        if_range: field("if-range"),
        close: false,
    }
}

/// Sends an HTTP/1 response head as a HEADERS frame. Transfer-Encoding is left out, since HTTP/3
/// has its own framing.
async fn send_head(stream: &mut FaultyStream, head: &str, ends: bool) -> Result<(), StreamError> {
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("500");
    let fields = lines.filter_map(|line| line.split_once(": ")).filter(|(name, _)| *name != "Transfer-Encoding");
    let reply =
        fields.fold(Response::builder().status(status), |reply: Builder, (name, value)| reply.header(name, value));
    stream.send_response(reply.body(()).expect("a head that is valid by construction")).await?;
    if ends { stream.finish().await } else { Ok(()) }
}
