//! The TCP keepalive settings of the command line.
//!
//! ```
//! use haul_cli::plan::KeepaliveArgs;
//!
//! assert_eq!(KeepaliveArgs::default().time.as_secs(), 60);
//! ```

use std::time::Duration;

/// The settings of TCP keepalive (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveArgs {
    /// `--keepalive-time`: the idle time before the first probe. Whole seconds, at least 1; default
    /// 60 s.
    pub time: Duration,
    /// `--keepalive-intvl`: the time between two probes. Whole seconds, at least 1; `None` means
    /// the value of `time`.
    pub interval: Option<Duration>,
    /// `--keepalive-cnt`: the number of unanswered probes after which the connection is closed. At
    /// least 1; default 9.
    pub count: u32,
}

impl Default for KeepaliveArgs {
    fn default() -> Self {
        KeepaliveArgs { time: Duration::from_secs(60), interval: None, count: 9 }
    }
}
