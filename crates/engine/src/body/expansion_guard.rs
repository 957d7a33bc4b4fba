//! The expansion guard: limits the decoded size of a coded body.
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

/// Limits on the cost of decoding. The numbers bound time and output; the codings' windows bound
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// Most decoded bytes of one body. Default: no limit (the ratio still holds). Exceeding it is
    /// [`ErrorKind::TooLarge`].
    pub max_output: Option<u64>,
    /// Most decoded bytes for each byte received, once more than [`free_output`](Self::free_output)
    /// was decoded. Default 750: text and markup seldom pass 100:1 as a whole, but a log of one
    /// line over and over comes to 340:1 or 520:1 by gzip, while the bombs seen in the wild sit at
    /// deflate's own limit of about 1030:1, and far above it in brotli and zstd. It holds for what
    /// every single coding of a stack gives, so a bomb wrapped into another coding does not pass
    /// either. 0 turns it off.
    pub max_ratio: u64,
    /// Bytes that may be decoded whatever the ratio. Default 8 MiB, so that short and very regular
    /// documents (an empty grid, a sparse table) pass. A bomb can deliver at most this much.
    pub free_output: u64,
    /// Base-2 logarithm of the largest zstd window accepted. Default 23 (8 MiB), which RFC 9659
    /// section 3 makes the most a sender may use; a decoder's memory grows to this. (brotli's own
    /// limit is 16 MiB, deflate's 32 KiB.)
    pub max_window_log: u32,
    /// Most codings of one body, default 5 as in curl; each costs a decoder and a buffer.
    pub max_codings: usize,
    /// Ignores bytes after the end of gzip or deflate that begin no further member are ignored, as
    /// by browsers and urllib3 do. Default no: they are an error, as in curl.
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

/// Counts the received bytes and the output of each coding.
#[derive(Debug)]
pub(super) struct ExpansionGuard {
    limits: DecodeLimits,
    received: u64,
    windows: u64,
}

/// The maximum size of the windows of one body's codings together, in bytes.
const MOST_WINDOWS: u64 = 32 << 20;

impl ExpansionGuard {
    pub(super) fn new(limits: DecodeLimits) -> Self {
        Self { limits, received: 0, windows: 0 }
    }

    /// Counts bytes that the decoder has consumed. Waiting bytes do not count, or a bomb could have
    /// the allowance of a whole buffer.
    pub(super) fn receive(&mut self, count: usize) {
        self.received += count as u64;
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Adds to the size of the windows.
    pub(super) fn window_grows(&mut self, bytes: u64) -> Result<()> {
        self.windows += bytes;
        let most = MOST_WINDOWS.max(1 << self.limits.max_window_log.min(31));
        if self.windows > most {
            let most = most >> 20;
            let message = format!("the codings of the body need windows of more than {most} MiB");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(())
    }

    /// Checks the number of bytes that a coding has decoded. `last` is true for the coding whose
    /// output is the body.
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
