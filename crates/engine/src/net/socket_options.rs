//! The socket options for keep-alive probes, and the states that the socket of an idle connection
//! shows.

use std::time::Duration;

/// The state of an idle connection's socket, which shows whether the connection may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleSocketState {
    /// The idle connection is open and has received nothing, so it may be used.
    Silent,
    /// The peer has closed or reset the idle connection.
    Closed,
    /// The socket has received bytes although no request is outstanding, so the connection must be
    /// closed.
    HasBytes,
}

/// The keep-alive probes on a silent connection (RFC 9293 §3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TcpKeepalive {
    /// The time of silence before the first probe. Default 60 s, as in curl.
    pub idle: Duration,
    /// The time between two keep-alive probes. Default 60 s, as in curl.
    pub interval: Duration,
    /// The number of unanswered probes after which the connection is closed. Default: `None`, for
    /// the system's number (9 on Linux, as in curl). Setting it costs a system call for each
    /// connection.
    pub count: Option<u32>,
}

impl Default for TcpKeepalive {
    fn default() -> Self {
        Self { idle: Duration::from_secs(60), interval: Duration::from_secs(60), count: None }
    }
}
