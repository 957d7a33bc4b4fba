//! Answers requests over HTTP/3 with the replies of the routes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::{BidiStream, RecvStream, SendStream};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Response, StatusCode};
use quinn::Connection;

use super::OriginState;
use super::body::ReplyBody;
use super::routes::{self, EarlyHintsCount};
use crate::http3::QuicListener;

/// Accepts connections until the listener is closed, and serves each connection in its own task.
pub(super) async fn accept(listener: Arc<QuicListener>, state: Arc<OriginState>) {
    while let Some(incoming) = listener.accept().await {
        let (listener, state) = (listener.clone(), state.clone());
        tokio::spawn(async move {
            let (number, _open) = state.record.connection();
            if let Some(connection) = listener.handshake(incoming).await {
                // A connection that breaks is the client's business; its requests are in the
                // record.
                let _ = serve(&connection, &listener, number, &state).await;
            }
        });
    }
}

async fn serve(
    connection: &Connection,
    listener: &QuicListener,
    number: u64,
    state: &Arc<OriginState>,
) -> Result<(), h3::error::ConnectionError> {
    let quic = h3_quinn::Connection::new(connection.clone());
    let mut session = h3::server::builder().build::<_, Bytes>(quic).await?;
    while let Some(request) = session.accept().await? {
        if listener.settings().has_key_updates() {
            connection.force_key_update();
        }
        let state = state.clone();
        tokio::spawn(async move {
            let _open = state.record.stream();
            // The client may have reset the stream.
            let _ = answer(request, number, &state).await;
        });
    }
    // The client has sent GOAWAY, and its requests are answered.
    connection.closed().await;
    Ok(())
}

async fn answer(
    request: RequestResolver<h3_quinn::Connection, Bytes>,
    connection: u64,
    state: &OriginState,
) -> Result<(), StreamError> {
    let (request, stream): (_, RequestStream<BidiStream<Bytes>, Bytes>) = request.resolve_request().await?;
    let (mut sending, receiving) = stream.split();
    if request.headers().get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    {
        sending.send_response(interim(StatusCode::CONTINUE)).await?;
    }
    let is_head = request.method() == Method::HEAD;
    let mut body = Http3RequestBody { stream: receiving, has_data: true };
    let reply = routes::reply(state, connection, true, request.map(|()| &mut body)).await;
    send(sending, reply, is_head).await?;
    // A reply that did not wait for the content needs no more of it (RFC 9114 section 4.1).
    if !body.is_end_stream() {
        body.stream.stop_sending(Code::H3_NO_ERROR);
    }
    Ok(())
}

async fn send(
    mut stream: RequestStream<SendStream<Bytes>, Bytes>,
    reply: Response<ReplyBody>,
    is_head: bool,
) -> Result<(), StreamError> {
    let (mut parts, mut body) = reply.into_parts();
    for number in 0..parts.extensions.get::<EarlyHintsCount>().map_or(0, |hints| hints.0) {
        let mut hints = interim(StatusCode::EARLY_HINTS);
        let link = HeaderValue::from_str(&format!("</style-{number}.css>; rel=preload")).expect("plain ASCII");
        hints.headers_mut().insert(header::LINK, link);
        stream.send_response(hints).await?;
    }
    let length =
        body.len().filter(|_| parts.status != StatusCode::NOT_MODIFIED && parts.status != StatusCode::NO_CONTENT);
    if let Some(length) = length {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    stream.send_response(Response::from_parts(parts, ())).await?;
    if !is_head {
        // The body of a route never fails.
        while let Some(Ok(frame)) = body.frame().await {
            match frame.into_data() {
                Ok(data) => stream.send_data(data).await?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        stream.send_trailers(trailers).await?;
                    }
                }
            }
        }
    }
    stream.finish().await
}

fn interim(status: StatusCode) -> Response<()> {
    let mut reply = Response::new(());
    *reply.status_mut() = status;
    reply
}

/// The content and the trailers of a request.
struct Http3RequestBody {
    stream: RequestStream<RecvStream, Bytes>,
    /// True until all of the content has been read; then only the trailers follow.
    has_data: bool,
}

impl Body for Http3RequestBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        if self.has_data {
            if let Some(mut data) = ready!(self.stream.poll_recv_data(context))? {
                let len = data.remaining();
                return Poll::Ready(Some(Ok(Frame::data(data.copy_to_bytes(len)))));
            }
            self.has_data = false;
        }
        let trailers = ready!(self.stream.poll_recv_trailers(context))?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        !self.has_data
    }
}
