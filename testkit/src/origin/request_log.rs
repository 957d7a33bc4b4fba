//! Records the received requests: counters, the number of requests for each path, and a log.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;

use crate::lock_even_if_poisoned::lock;

/// A request that the origin received.
#[derive(Clone, Debug)]
pub struct LoggedRequest {
    /// The number of the request's connection, counted from 0 in the order in which connections
    /// were accepted.
    pub connection: u64,
    /// True if the connection used TLS.
    pub tls: bool,
    /// The HTTP version of the request: "HTTP/1.0", "HTTP/1.1", "HTTP/2.0" or "HTTP/3.0".
    pub version: String,
    /// The request method.
    pub method: String,
    /// The request target as sent: path and query, or an absolute URL.
    pub target: String,
    /// The names (in lower case) and values of the fields, in the order received. Invalid UTF-8 is
    /// replaced.
    pub headers: Vec<(String, String)>,
    /// The whole body of the request, without chunked framing.
    pub body: Bytes,
    /// The trailer fields of the request: names in lower case, and values.
    pub trailers: Vec<(String, String)>,
}

impl LoggedRequest {
    /// Returns the value of the first field with this name; `None` if no field has this name.
    /// `name` must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// A number that increases and decreases, and its largest value so far.
#[derive(Default)]
struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    fn up(&self) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.peak.fetch_max(now, SeqCst);
    }

    fn down(&self) {
        self.now.fetch_sub(1, SeqCst);
    }
}

/// The log of an origin's requests, and the counts of its connections and requests.
pub(super) struct OriginRequestLog {
    keep: bool,
    connections: AtomicU64,
    full_handshakes: AtomicU64,
    open: Gauge,
    requests: AtomicU64,
    answering: Gauge,
    streams: Gauge,
    hits: Mutex<HashMap<String, u64>>,
    log: Mutex<Vec<LoggedRequest>>,
    attempts: Mutex<HashMap<String, u64>>,
}

impl OriginRequestLog {
    pub(super) fn new(keep: bool) -> OriginRequestLog {
        OriginRequestLog {
            keep,
            connections: AtomicU64::new(0),
            full_handshakes: AtomicU64::new(0),
            open: Gauge::default(),
            requests: AtomicU64::new(0),
            answering: Gauge::default(),
            streams: Gauge::default(),
            hits: Mutex::default(),
            log: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// Counts a connection as accepted, and as open until the returned guard is dropped. Also
    /// returns the number of the connection, counted from 0.
    pub(super) fn connection(&self) -> (u64, impl Drop + '_) {
        self.open.up();
        (self.connections.fetch_add(1, SeqCst), GaugeGuard(&self.open))
    }

    /// Counts a request as being answered until the returned guard is dropped.
    pub(super) fn request(&self, path: &str) -> impl Drop + '_ {
        self.requests.fetch_add(1, SeqCst);
        self.answering.up();
        if self.keep {
            *lock(&self.hits).entry(path.to_owned()).or_default() += 1;
        }
        GaugeGuard(&self.answering)
    }

    /// Counts an HTTP/3 request stream as open until the returned guard is dropped.
    pub(super) fn stream(&self) -> impl Drop + '_ {
        self.streams.up();
        GaugeGuard(&self.streams)
    }

    pub(super) fn peak_streams(&self) -> u64 {
        self.streams.peak.load(SeqCst)
    }

    pub(super) fn keeps_log(&self) -> bool {
        self.keep
    }

    pub(super) fn add(&self, request: LoggedRequest) {
        lock(&self.log).push(request);
    }

    /// Counts a request for `path`. Returns the number of earlier requests for that path.
    pub(super) fn attempt(&self, path: &str) -> u64 {
        let mut attempts = lock(&self.attempts);
        let count = attempts.entry(path.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    pub(super) fn full_handshake(&self) {
        self.full_handshakes.fetch_add(1, SeqCst);
    }

    pub(super) fn full_handshakes(&self) -> u64 {
        self.full_handshakes.load(SeqCst)
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(SeqCst)
    }

    pub(super) fn open_connections(&self) -> u64 {
        self.open.now.load(SeqCst)
    }

    pub(super) fn peak_connections(&self) -> u64 {
        self.open.peak.load(SeqCst)
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }

    pub(super) fn peak_requests(&self) -> u64 {
        self.answering.peak.load(SeqCst)
    }

    pub(super) fn hits(&self, path: &str) -> u64 {
        lock(&self.hits).get(path).copied().unwrap_or(0)
    }

    pub(super) fn log(&self) -> Vec<LoggedRequest> {
        lock(&self.log).clone()
    }

    pub(super) fn forget(&self) {
        lock(&self.hits).clear();
        lock(&self.log).clear();
        lock(&self.attempts).clear();
    }
}

struct GaugeGuard<'a>(&'a Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.down();
    }
}
