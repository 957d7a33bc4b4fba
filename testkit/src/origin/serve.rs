//! Accepts connections, and serves each connection in its own task.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::header;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::body::{ReplyBody, RouteBodySource};
use super::{OriginState, routes};

/// The minimum flow-control window in bytes that the origin grants on an HTTP/2 connection. The
/// window of a stream may be smaller.
const CONNECTION_WINDOW: u32 = 1 << 20;

pub(super) async fn accept(listener: TcpListener, tls: Option<Arc<ServerConfig>>, state: Arc<OriginState>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors or an aborted connection: a later one may succeed, but not at
            // once.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (state, tls) = (state.clone(), tls.clone());
        tokio::spawn(async move {
            let (connection, _open) = state.record.connection();
            // A connection that breaks is the client's business; its requests are in the record.
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve(stream, connection, false, &state).await,
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                        if stream.get_ref().1.handshake_kind() != Some(HandshakeKind::Resumed) {
                            state.record.full_handshake();
                        }
                        serve(stream, connection, true, &state).await;
                    }
                }
            }
        });
    }
}

async fn serve<S>(stream: S, connection: u64, tls: bool, state: &Arc<OriginState>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let http2 = state.http2;
    let shared = state.clone();
    let service = service_fn(move |request| {
        let state = shared.clone();
        async move {
            let bare = request.method() == Method::HEAD && request.version() == Version::HTTP_2;
            let mut reply = routes::reply(&state, connection, tls, request).await;
            if let Some(value) = state.alt_svc.as_ref().filter(|_| tls) {
                reply.headers_mut().insert(header::ALT_SVC, value.clone());
            }
            if bare {
                // Over HTTP/2 hyper leaves it to us.
                let length = reply.body().len();
                *reply.body_mut() = ReplyBody::with_length(RouteBodySource::Pieces(VecDeque::new()));
                if let Some(length) = length {
                    reply.headers_mut().insert(header::CONTENT_LENGTH, length.into());
                }
            }
            Ok::<_, Infallible>(reply)
        }
    });
    let stream = TokioIo::new(stream);
    match http2 {
        None => drop(http1::Builder::new().pipeline_flush(true).serve_connection(stream, service).await),
        Some(streams) => {
            let mut builder = auto::Builder::new(TokioExecutor::new());
            builder.http1().pipeline_flush(true);
            let window = state.http2_window;
            let mut http2 = builder.http2();
            http2.max_concurrent_streams(streams).initial_stream_window_size(window);
            http2.initial_connection_window_size(window.max(CONNECTION_WINDOW));
            let _ = builder.serve_connection(stream, service).await;
        }
    }
}
