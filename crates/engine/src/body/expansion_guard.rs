//! Limits on the decoded size of a body, against decompression bombs.
//!
//! A few kilobytes can decode to terabytes. Decoding itself needs little memory, but the output may
//! fill a disk, use the CPU for long, or exhaust the memory of the next program. So two limits
//! apply: a size that the user may set, and a ratio of decoded to received bytes.
//!
//! ```
//! use haul::body::DecodeLimits;
//! let mut limits = DecodeLimits::default();
//! limits.max_output = Some(1 << 30);
//! assert_eq!(limits.max_ratio, 750);
//! ```

use crate::{Error, ErrorKind, Result};

/// Limits on the decoding of one body: on the decoded size, on the window of zstd, and on the
/// number of codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// The maximum number of decoded bytes of one body. A larger body is an error of the kind
    /// [`ErrorKind::TooLarge`]. Default: `None`; only [`max_ratio`](Self::max_ratio) then limits
    /// the size.
    pub max_output: Option<u64>,
    /// The maximum number of decoded bytes for each byte received. The limit applies only to a body
    /// that decodes to more than [`free_output`](Self::free_output) bytes. Of stacked codings, it
    /// applies to each, so that a bomb inside another coding is detected. Default 750: text and
    /// markup seldom exceed 100:1, and a log that repeats one line reaches 340:1 to 520:1 with
    /// gzip. Bombs reach about 1030:1, the maximum of deflate, and far more with brotli and zstd. 0
    /// means no limit.
    pub max_ratio: u64,
    /// The number of decoded bytes of one body up to which [`max_ratio`](Self::max_ratio) does not
    /// apply. A body whose ratio is too high is refused as soon as its decoded size exceeds this
    /// number. Default 8 MiB, so that small, very regular documents (an empty grid, a sparse table)
    /// are accepted.
    pub free_output: u64,
    /// Base-2 logarithm of the largest zstd window that is accepted; a decoder may use that much
    /// memory. Default 23 (8 MiB), the maximum that senders may use (RFC 9659 section 3). The
    /// windows of brotli (at most 16 MiB) and deflate (32 KiB) are not limited by this.
    pub max_window_log: u32,
    /// The maximum number of codings of one body. Default 5, as in curl; each coding needs a
    /// decoder and a buffer.
    pub max_codings: usize,
    /// True to ignore bytes after the end of gzip or deflate content, as browsers and urllib3 do.
    /// Another gzip member is decoded in any case. Default: false; other bytes are then an error,
    /// as in curl.
    pub passes_over_rest: bool,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self {
            max_output: None,
            max_ratio: 750,
            free_output: 8 << 20,
            max_window_log: 23,
            max_codings: 5,
            passes_over_rest: false,
        }
    }
}

/// The guard against decompression bombs. It counts received bytes and window sizes, and compares
/// them with the [`DecodeLimits`].
#[derive(Debug)]
pub(super) struct ExpansionGuard {
    limits: DecodeLimits,
    received: u64,
    windows: u64,
}

/// The maximum total size, in bytes, of the windows of all codings of one body. If a single zstd
/// window may be larger ([`DecodeLimits::max_window_log`]), its maximum size applies instead.
const MAX_WINDOW_MEMORY: u64 = 32 << 20;

impl ExpansionGuard {
    pub(super) fn new(limits: DecodeLimits) -> Self {
        Self { limits, received: 0, windows: 0 }
    }

    /// Counts `count` received bytes that the decoder has consumed. Bytes that are only buffered
    /// must not be counted: they would allow a bomb to expand further before it is detected.
    pub(super) fn count_received(&mut self, count: usize) {
        self.received += count as u64;
    }

    pub(super) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// Adds `bytes` to the total size of the windows of the body's decoders. Returns an error if
    /// the total exceeds both [`MAX_WINDOW_MEMORY`] and the size of the largest zstd window that is
    /// accepted.
    pub(super) fn count_window(&mut self, bytes: u64) -> Result<()> {
        self.windows += bytes;
        let most = MAX_WINDOW_MEMORY.max(1 << self.limits.max_window_log.min(31));
        if self.windows > most {
            let most = most >> 20;
            let message = format!("the codings of the body need windows of more than {most} MiB");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(())
    }

    /// Returns an error if the output of one coding of the body exceeds a limit. `decoded` is the
    /// number of bytes that this coding has put out so far. [`max_ratio`](DecodeLimits::max_ratio)
    /// limits each coding. [`max_output`](DecodeLimits::max_output) limits only the coding whose
    /// output is the body itself; `last` is true for that coding.
    pub(super) fn check(&self, decoded: u64, last: bool) -> Result<()> {
        let DecodeLimits { max_output, max_ratio, free_output, .. } = self.limits;
        if let Some(most) = max_output.filter(|&most| last && decoded > most) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("decoded body is larger than the {most} bytes allowed"),
            ));
        }
        if max_ratio > 0 && decoded > free_output && decoded > self.received.saturating_mul(max_ratio) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "body decodes to more than is allowed: {decoded} bytes from {} received, more than {max_ratio}:1",
                    self.received
                ),
            ));
        }
        Ok(())
    }
}
