//! An upload with a rate limit (curl's `--limit-rate`).
//!
//! If the [token bucket](haul_policy::byte_and_transfer_rates::TokenBucket) is empty, a read fails
//! with `WouldBlock`, and [`BodyUpload::resumes_at`] says when the next read is worthwhile. The
//! driver waits until then, since it also observes time limits, the interrupt callback and the
//! server.

use std::io;
use std::task::Waker;
use std::time::Instant;

use haul_policy::MonotonicTime;
use haul_policy::byte_and_transfer_rates::TokenBucket;
use rustix::fd::BorrowedFd;

use super::super::request_trailers::Field;
use super::BodyUpload;
use crate::time_conversions;
use crate::transfer::TotalRateLimit;

/// An upload that reads its content no faster than a rate limit allows.
pub(crate) struct RateLimitedUpload {
    upload: Box<dyn BodyUpload>,
    bucket: Option<TokenBucket>,
    total: Option<TotalRateLimit>,
    /// The time at which the limits may allow bytes again; `None` if the last read was allowed.
    allowed_at: Option<Instant>,
    /// The last turn of the upload in the bucket of `total`; time 0 before the first turn.
    turn: MonotonicTime,
}

impl RateLimitedUpload {
    /// Makes an upload that sends at most `bytes_per_second` bytes a second. `total` is a further
    /// limit, shared with other transfers. An argument that is `None` sets no such limit.
    pub(crate) fn new(
        upload: Box<dyn BodyUpload>,
        bytes_per_second: Option<u64>,
        total: Option<TotalRateLimit>,
    ) -> Self {
        let bucket =
            bytes_per_second.map(|rate| TokenBucket::new(rate, time_conversions::to_monotonic_time(Instant::now())));
        Self { upload, bucket, total, allowed_at: None, turn: MonotonicTime(0) }
    }

    /// Returns the number of bytes that may be read now, at least 1 and at most `want`. Fails with
    /// `WouldBlock` if the rate limit allows no byte yet.
    fn allowed_bytes(&mut self, want: u64) -> io::Result<usize> {
        let now = Instant::now();
        // A bucket that had too few bytes is not asked before it may have enough.
        if self.allowed_at.is_none_or(|at| at <= now) {
            match self.request_bytes(want, time_conversions::to_monotonic_time(now)) {
                Ok(tokens) => {
                    self.allowed_at = None;
                    return Ok(usize::try_from(tokens).unwrap_or(usize::MAX));
                }
                Err(at) => self.allowed_at = Some(time_conversions::to_instant(at)),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
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
        match &self.total {
            Some(total) => total.lock_send_bucket().request_bytes(own, now, &mut self.turn),
            None => Ok(own),
        }
    }
}

impl BodyUpload for RateLimitedUpload {
    fn length(&self) -> Option<u64> {
        self.upload.length()
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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

    fn check_empty(&mut self) -> io::Result<()> {
        self.upload.check_empty()
    }

    fn waits(&self) -> bool {
        self.upload.waits()
    }

    fn set_waker(&mut self, waker: Waker) {
        self.upload.set_waker(waker);
    }

    fn source(&self) -> Option<BorrowedFd<'_>> {
        // The source is not read before that time, even if it has bytes.
        if self.allowed_at.is_none() { self.upload.source() } else { None }
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.allowed_at.or_else(|| self.upload.resumes_at())
    }

    fn trailers(&mut self) -> io::Result<Vec<Field>> {
        self.upload.trailers()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::super::{BodyPiece, OneShotSource, RequestBody};
    use super::*;

    fn paced(rate: u64) -> RateLimitedUpload {
        RateLimitedUpload::new(RequestBody::from(vec![7; 10_000]).upload(), Some(rate), None)
    }

    #[test]
    fn rate_limited_upload_delivers_everything_in_small_reads() {
        let mut buffer = [0; 10_000];
        let mut upload = paced(64_000);
        let mut all = 0;
        loop {
            match upload.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    assert!(count <= 4096, "more than is ever there at once: {count}");
                    all += count;
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    let at = upload.resumes_at().unwrap();
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                }
            }
        }
        assert_eq!((all, upload.length()), (10_000, Some(10_000)));
        assert!(upload.ready().is_empty(), "what lies in memory is not taken past the rate");
    }

    #[test]
    fn upload_that_asks_early_keeps_its_turn() {
        let total = TotalRateLimit::new(3_200_000);
        let [mut first, mut second] = [(); 2].map(|()| {
            let content = RequestBody::from(vec![7; 10_000]).upload();
            RateLimitedUpload::new(content, None, Some(total.clone()))
        });
        let now = time_conversions::to_monotonic_time(Instant::now() + std::time::Duration::from_secs(1));
        assert_eq!(first.request_bytes(u64::MAX, now), Ok(100_000));
        total.lock_send_bucket().remove(100_000);
        let turn = first.request_bytes(1, now).unwrap_err();
        for _ in 0..1000 {
            assert_eq!(first.request_bytes(1, now), Err(turn));
        }
        assert_eq!(second.request_bytes(1, now).unwrap_err().since(turn), turn.since(now));
    }

    #[test]
    fn rate_limited_upload_does_not_poll_its_source() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(&[7; 8192]).unwrap();
        let body = RequestBody::pieces([BodyPiece::Once(OneShotSource::file(File::from(OwnedFd::from(reader))))]);
        let mut upload = RateLimitedUpload::new(body.upload(), Some(1), None);
        while upload.read(&mut [0; 8192]).is_ok() {}
        assert!(upload.resumes_at().is_some_and(|at| at > Instant::now()));
        assert!(upload.source().is_none());
    }
}
