//! Counts the TLS sessions that QUIC clients resume, which quinn does not report.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

/// A session store that counts the sessions removed from it. Each TLS 1.3 session is removed once,
/// when a client resumes it.
#[derive(Debug)]
pub(super) struct ResumptionCountingStore {
    sessions: Arc<ServerSessionMemoryCache>,
    taken: AtomicU64,
}

impl ResumptionCountingStore {
    pub(super) fn new() -> Arc<ResumptionCountingStore> {
        Arc::new(ResumptionCountingStore { sessions: ServerSessionMemoryCache::new(4096), taken: AtomicU64::new(0) })
    }

    pub(super) fn resumed_sessions(&self) -> u64 {
        self.taken.load(SeqCst)
    }
}

impl StoresServerSessions for ResumptionCountingStore {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.sessions.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.sessions.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let session = self.sessions.take(key)?;
        self.taken.fetch_add(1, SeqCst);
        Some(session)
    }

    fn can_cache(&self) -> bool {
        self.sessions.can_cache()
    }
}
