//! The checksums, for records, of files that were not hashed while they were written. That happens
//! when a transfer completes a file of an earlier run. Such a file may have many gigabytes, so it
//! is hashed piece by piece, at the end of each round of a worker's event loop. Other transfers
//! continue between two pieces.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::FleetRun;
use super::finish_jobs_and_stages::FinishedJob;
use crate::fleet::reported_job_and_destination::BodyDestination;
use crate::ignore_poison::IgnorePoison;
use crate::sink::checksum::{HashAlgorithm, IncrementalFileHash};

/// The number of bytes of a file that are hashed in one step, so that a worker soon returns to its
/// transfers.
const HASH_PIECE: u64 = 1 << 20;

/// The maximum number of finished jobs (transfers) whose files wait to be hashed. If there are
/// more, a worker hashes a whole file before it continues with transfers.
const MAX_WAITING: usize = 64;

/// The queue of a fleet's finished jobs (transfers with the data for their reports) that are not
/// reported yet, because the checksums of their files are still being computed.
#[derive(Default)]
pub(super) struct ChecksumQueue {
    waiting: Mutex<VecDeque<Box<UnhashedJob>>>,
    /// A copy of the length of `waiting` that can be read without the lock.
    count: AtomicUsize,
}

impl ChecksumQueue {
    fn with_queue<T>(&self, change: impl FnOnce(&mut VecDeque<Box<UnhashedJob>>) -> T) -> T {
        let mut waiting = self.waiting.lock().ignore_poison();
        let changed = change(&mut waiting);
        self.count.store(waiting.len(), Ordering::Relaxed);
        changed
    }
}

/// A finished job (a transfer with the data for its report) that is reported after the checksum of
/// its file is computed.
struct UnhashedJob {
    finished: FinishedJob,
    file: File,
    hash: IncrementalFileHash,
}

impl UnhashedJob {
    /// Hashes up to `most` further bytes of the file. Returns the finished job if the whole file is
    /// hashed or cannot be read; otherwise returns `self` as the error.
    fn hash_next(mut self: Box<Self>, most: u64) -> Result<FinishedJob, Box<Self>> {
        match self.hash.hash_next(&self.file, most) {
            Ok(false) => Err(self),
            Ok(true) => {
                let Self { mut finished, hash, .. } = *self;
                finished.content.file_checksum = Some(hash.finish());
                Ok(finished)
            }
            Err(_) => Ok(self.finished),
        }
    }
}

impl FleetRun {
    /// Reports a finished job. If its record needs the checksum of its file, the job is queued and
    /// reported only after the file is hashed.
    pub(super) fn report_with_checksum(&self, finished: FinishedJob) {
        let records = self.stages[finished.dispatched.job.stage].records;
        let Some(algorithm) = records.and_then(|records| records.file_checksum) else {
            return self.report_and_finish(finished);
        };
        let job = match Self::split_off_unhashed(finished, algorithm) {
            Ok(finished) => return self.report_and_finish(finished),
            Err(job) => job,
        };
        match job.hash_next(HASH_PIECE) {
            Ok(finished) => self.report_and_finish(finished),
            Err(job) => {
                self.checksums.with_queue(|waiting| waiting.push_back(job));
                if self.checksums.count.load(Ordering::Relaxed) > MAX_WAITING {
                    self.hash_first_job(u64::MAX);
                }
            }
        }
    }

    /// Hashes the next piece of the file of the finished job that has waited longest for its
    /// checksum. Returns false if no job waits.
    pub(super) fn hash_piece(&self) -> bool {
        self.checksums.count.load(Ordering::Relaxed) > 0
            && !self.over.load(Ordering::SeqCst)
            && self.hash_first_job(HASH_PIECE)
    }

    fn hash_first_job(&self, most: u64) -> bool {
        // Another worker may take the next job meanwhile.
        let Some(job) = self.checksums.with_queue(VecDeque::pop_front) else { return false };
        match job.hash_next(most) {
            Ok(finished) => self.report_and_finish(finished),
            Err(job) => self.checksums.with_queue(|waiting| waiting.push_front(job)),
        }
        true
    }

    /// Decides whether the file of a finished job must be hashed with `algorithm`. If not, returns
    /// `Ok` with the job. If so, opens the file and returns `Err` with the job.
    fn split_off_unhashed(finished: FinishedJob, algorithm: HashAlgorithm) -> Result<FinishedJob, Box<UnhashedJob>> {
        let BodyDestination::File { path, .. } = &finished.dispatched.job.destination else { return Ok(finished) };
        let (None, Ok(())) = (&finished.content.file_checksum, &finished.outcome.result) else {
            return Ok(finished);
        };
        // A FIFO would wait for a writer when it is opened.
        match path.is_file().then(|| File::open(path)) {
            Some(Ok(file)) => Err(Box::new(UnhashedJob { finished, file, hash: IncrementalFileHash::new(algorithm) })),
            Some(Err(_)) | None => Ok(finished),
        }
    }
}
