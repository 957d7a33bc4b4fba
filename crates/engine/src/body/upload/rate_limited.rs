//! An upload with a rate limit (curl's `--limit-rate`).
//!
//! Without a [waker](BodyUpload::set_waker), a read waits until the [token
//! bucket](haul_policy::byte_and_transfer_rates::TokenBucket) has bytes. With a waker, a read does
//! not wait, and [`BodyUpload::resumes_at`] says when the next read is worthwhile.

use std::io;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use haul_policy::MonotonicTime;
use haul_policy::byte_and_transfer_rates::TokenBucket;
use rustix::fd::BorrowedFd;

use super::super::request_trailers::Field;
use super::BodyUpload;
use crate::time_conversions;
use crate::transfer::TotalRateLimit;

/// The longest sleep of a waiting read before the read checks its deadline again.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// An upload that reads its content no faster than a rate limit allows.
pub(crate) struct RateLimitedUpload {
    upload: Box<dyn BodyUpload>,
    bucket: Option<TokenBucket>,
    total: Option<TotalRateLimit>,
    deadline: Option<Instant>,
    is_attended: bool,
    resumes_at: Option<Instant>,
}

impl RateLimitedUpload {
    /// Makes an upload that sends at most `bytes_per_second` bytes a second. `total` is a further
    /// limit, shared with other transfers. Reads fail after `deadline`. An argument that is `None`
    /// sets no such limit.
    pub(crate) fn new(
        upload: Box<dyn BodyUpload>,
        bytes_per_second: Option<u64>,
        total: Option<TotalRateLimit>,
        deadline: Option<Instant>,
    ) -> Self {
        let bucket =
            bytes_per_second.map(|rate| TokenBucket::new(rate, time_conversions::to_monotonic_time(Instant::now())));
        Self { upload, bucket, total, deadline, is_attended: false, resumes_at: None }
    }

    /// Returns the number of bytes that may be read now, at least 1 and at most `want`. If the rate
    /// limit allows no byte yet, waits until it does. If a waker was set, fails with `WouldBlock`
    /// instead.
    fn allowed_bytes(&mut self, want: u64) -> io::Result<usize> {
        let mut turn = None;
        loop {
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if let Some(left) = turn.map(|at: Instant| at.saturating_duration_since(now)).filter(|left| !left.is_zero())
            {
                thread::sleep(left.min(MAX_SLEEP));
                continue;
            }
            let at = match self.request_bytes(want, time_conversions::to_monotonic_time(now)) {
                Ok(tokens) => return Ok(usize::try_from(tokens).unwrap_or(usize::MAX)),
                Err(at) => time_conversions::to_instant(at),
            };
            if self.is_attended {
                self.resumes_at = Some(at);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            turn = Some(at);
        }
    }

    /// Returns the number of bytes, at most `want`, that the upload's own limit and the total limit
    /// allow now. If the limits allow no bytes now, returns as an error the time at which they may
    /// allow some.
    fn request_bytes(&mut self, want: u64, now: MonotonicTime) -> Result<u64, MonotonicTime> {
        let own = match &mut self.bucket {
            Some(bucket) => match bucket.available(now) {
                0 => return Err(bucket.ready_at(now, want)),
                tokens => tokens,
            },
            None => want.max(1),
        };
        self.total.as_ref().map_or(Ok(own), |total| total.lock_send_bucket().request_bytes(own, now))
    }
}

impl BodyUpload for RateLimitedUpload {
    fn length(&self) -> Option<u64> {
        self.upload.length()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.resumes_at = None;
        let room = self.allowed_bytes(buffer.len() as u64)?.min(buffer.len());
        let count = self.upload.read(&mut buffer[..room])?;
        if let Some(bucket) = &mut self.bucket {
            bucket.remove(count as u64);
        }
        if let Some(total) = &self.total {
            total.lock_send_bucket().remove(count as u64);
        }
        Ok(count)
    }

    fn waits(&self) -> bool {
        true
    }

    fn set_waker(&mut self, waker: Waker) {
        self.is_attended = true;
        self.upload.set_waker(waker);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        self.upload.source()
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        self.upload.trailers()
    }
}

#[cfg(test)]
mod tests {
    use super::super::RequestBody;
    use super::*;

    fn paced(rate: u64, deadline: Option<Instant>) -> RateLimitedUpload {
        RateLimitedUpload::new(RequestBody::from(vec![7; 10_000]).upload(), Some(rate), None, deadline)
    }

    #[test]
    fn rate_limited_upload_delivers_everything_in_small_reads() {
        let mut buffer = [0; 10_000];
        let mut upload = paced(64_000, None);
        let mut all = 0;
        loop {
            let count = upload.read(&mut buffer).unwrap();
            assert!(count <= 4096, "more than is ever there at once: {count}");
            all += count;
            if count == 0 {
                break;
            }
        }
        assert_eq!((all, upload.length()), (10_000, Some(10_000)));
        assert!(upload.ready().is_empty(), "what lies in memory is not taken past the rate");
    }

    #[test]
    fn rate_limited_upload_with_waker_never_blocks() {
        let mut buffer = [0; 10_000];
        let mut upload = paced(64_000, None);
        upload.set_waker(Waker::noop().clone());
        let mut all = 0;
        let error = loop {
            match upload.read(&mut buffer) {
                Ok(count) => all += count,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(all < 10_000 && upload.resumes_at().is_some());
    }

    #[test]
    fn rate_limited_upload_fails_after_the_deadline() {
        let error = paced(1000, Some(Instant::now())).read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
