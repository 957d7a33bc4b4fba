//! A simple HTTP/3 client based on quinn and h3, for the tests of the servers.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use h3_quinn::OpenStreams;
use http::{HeaderMap, Request, Response};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use testkit::test_certificates;
use tokio::runtime::Runtime;

/// A complete response over HTTP/3.
pub struct H3Reply {
    pub head: Response<()>,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl H3Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name).map(|value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// A connection to a server, with the async runtime that drives it.
pub struct H3Client {
    pub runtime: Runtime,
    pub endpoint: Endpoint,
    pub connection: Connection,
    pub requests: SendRequest<OpenStreams, Bytes>,
}

pub fn endpoint(ca_pem: &str) -> Endpoint {
    let mut tls = Arc::unwrap_or_clone(test_certificates::client_config(ca_pem));
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    endpoint.set_default_client_config(config);
    endpoint
}

impl H3Client {
    pub fn connect(addr: SocketAddr, ca_pem: &str) -> Result<H3Client, ConnectionError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (endpoint, connection, requests) = runtime.block_on(async {
            let endpoint = endpoint(ca_pem);
            let connection = endpoint.connect(addr, "localhost").unwrap().await?;
            let quic = h3_quinn::Connection::new(connection.clone());
            let (mut driver, requests) = h3::client::new(quic).await.expect("the control stream opens");
            tokio::spawn(async move { driver.wait_idle().await });
            Ok::<_, ConnectionError>((endpoint, connection, requests))
        })?;
        Ok(H3Client { runtime, endpoint, connection, requests })
    }

    pub fn get(&self, target: &str) -> Result<H3Reply, StreamError> {
        self.fetch(Request::get(format!("https://localhost{target}")), b"", None)
    }

    pub fn fetch(
        &self,
        request: http::request::Builder,
        content: &[u8],
        trailers: Option<HeaderMap>,
    ) -> Result<H3Reply, StreamError> {
        let request = request.body(()).unwrap();
        let (mut requests, content) = (self.requests.clone(), Bytes::copy_from_slice(content));
        let exchange = async move {
            let mut stream = requests.send_request(request).await?;
            if !content.is_empty() {
                stream.send_data(content).await?;
            }
            if let Some(trailers) = trailers {
                stream.send_trailers(trailers).await?;
            }
            stream.finish().await?;
            read(stream).await
        };
        self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), exchange).await.expect("a reply") })
    }
}

/// Reads the final response of a stream.
pub async fn read(mut stream: RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>) -> Result<H3Reply, StreamError> {
    let head = stream.recv_response().await?;
    let mut body = Vec::new();
    while let Some(mut data) = stream.recv_data().await? {
        while data.has_remaining() {
            let chunk = data.chunk();
            body.extend_from_slice(chunk);
            let len = chunk.len();
            data.advance(len);
        }
    }
    Ok(H3Reply { head, body, trailers: stream.recv_trailers().await? })
}
