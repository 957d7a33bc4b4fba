//! TCP keepalive as the command line gives it.
//!
//! ```
//! use haul_cli::plan::KeepaliveArgs;
//!
//! assert_eq!(KeepaliveArgs::default().time.as_secs(), 60);
//! ```

use std::time::Duration;

/// TCP keepalive (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveArgs {
    /// Idle time before the first probe; whole seconds, at least 1. Default 60 s.
    pub time: Duration,
    /// Time between probes; whole seconds, at least 1. Default: as `time`.
    pub interval: Option<Duration>,
    /// Probes without an answer that end the connection, from 1. Default 9.
    pub count: u32,
}

impl Default for KeepaliveArgs {
    fn default() -> Self {
        KeepaliveArgs { time: Duration::from_secs(60), interval: None, count: 9 }
    }
}
