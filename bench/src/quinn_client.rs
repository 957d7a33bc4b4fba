//! An HTTP/3 client that uses quinn and the crate h3 as their examples do. It is a competitor of
//! haul in the job `h3`.
//!
//! ```text
//! bench quinn-client ca.pem URL               the body to standard output
//! bench quinn-client ca.pem discard URL       the number of its bytes
//! bench quinn-client ca.pem list FILE         the bodies of many URLs of one host, in any order
//! bench quinn-client ca.pem discard-list FILE the number of their bytes
//! ```

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::error::{Code, StreamError};
use h3_quinn::OpenStreams;
use http::{Request, StatusCode, Uri};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use testkit::test_certificates::client_config;
use tokio::task::JoinSet;

use crate::Result;

/// The result type of tasks, which run on several threads.
type TaskResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The output of the bench's quinn client: the total length of the bodies, or the bodies
/// themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrintedLengthOrBodies {
    /// Prints the total number of bytes of all bodies.
    Length,
    /// Writes one body, piece by piece as it arrives.
    Pieces,
    /// Writes several bodies, each when it is complete.
    Bodies,
}

/// The number of concurrent requests.
const PARALLEL: usize = 50;

/// Runs `bench quinn-client`: fetches URLs over HTTP/3 with quinn. `arguments` are the words of the
/// command line after `quinn-client`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let list = |file| Ok::<_, io::Error>(fs::read_to_string(file)?.lines().map(str::to_owned).collect());
    let (ca, urls, output) = match words[..] {
        [ca, url] => (ca, vec![url.to_owned()], PrintedLengthOrBodies::Pieces),
        [ca, "discard", url] => (ca, vec![url.to_owned()], PrintedLengthOrBodies::Length),
        [ca, "list", file] => (ca, list(file)?, PrintedLengthOrBodies::Bodies),
        [ca, "discard-list", file] => (ca, list(file)?, PrintedLengthOrBodies::Length),
        _ => return Err("quinn-client CA [discard] URL, or quinn-client CA list|discard-list FILE".into()),
    };
    let ca = fs::read_to_string(ca)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let total = runtime.block_on(fetch_all(&ca, urls, output)).map_err(|error| error.to_string())?;
    if output == PrintedLengthOrBodies::Length {
        println!("{total}");
    }
    Ok(())
}

/// Fetches all URLs over one connection. Returns the number of body bytes.
async fn fetch_all(ca: &str, urls: Vec<String>, output: PrintedLengthOrBodies) -> TaskResult<u64> {
    let first: Uri = urls.first().ok_or("no URL")?.parse()?;
    let addr: SocketAddr = first.authority().ok_or("no host")?.as_str().parse()?;
    let mut tls = Arc::unwrap_or_clone(client_config(ca));
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    let connection = endpoint.connect(addr, &addr.ip().to_string())?.await?;
    let (mut driver, requests) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    let driver = tokio::spawn(async move { driver.wait_idle().await });
    let queue = Arc::new(Mutex::new(urls.into_iter()));
    let mut tasks = JoinSet::new();
    for _ in 0..PARALLEL {
        let (queue, requests) = (queue.clone(), requests.clone());
        tasks.spawn(async move {
            let mut total = 0;
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(url) = next else { return Ok(total) };
                total += fetch(requests.clone(), &url, output).await?;
            }
        });
    }
    let mut total = 0;
    while let Some(task) = tasks.join_next().await {
        let task: TaskResult<u64> = task?;
        total += task?;
    }
    drop(requests);
    // An error only says that the connection is closed.
    let _ = driver.await?;
    endpoint.wait_idle().await;
    Ok(total)
}

async fn fetch(
    mut requests: SendRequest<OpenStreams, Bytes>,
    url: &str,
    output: PrintedLengthOrBodies,
) -> TaskResult<u64> {
    let mut stream = requests.send_request(Request::get(url).body(())?).await?;
    match stream.finish().await {
        // A server that does not read the request to its end stops it, and its response is valid
        // (RFC 9114 section 4.1).
        Err(StreamError::RemoteTerminate { code: Code::H3_NO_ERROR, .. }) => {}
        finished => finished?,
    }
    let status = stream.recv_response().await?.status();
    if status != StatusCode::OK {
        return Err(format!("{url}: {status}").into());
    }
    let (mut total, mut body) = (0, Vec::new());
    while let Some(mut data) = stream.recv_data().await? {
        total += data.remaining() as u64;
        match output {
            PrintedLengthOrBodies::Length => {}
            PrintedLengthOrBodies::Pieces => io::stdout().write_all(&data.copy_to_bytes(data.remaining()))?,
            PrintedLengthOrBodies::Bodies => body.extend_from_slice(&data.copy_to_bytes(data.remaining())),
        }
    }
    io::stdout().write_all(&body)?;
    Ok(total)
}
